//! Finds a directory for the cluster, a user who may run the server, and PostgreSQL's programs.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{StartError, failed};

/// The directory for clusters of root whose server's user cannot reach the data directory.
const FALLBACK: &str = "/var/lib/oncepay";
const OLDEST_MAJOR: u32 = 15;

/// The directory of the cluster, and the user of its server.
#[derive(Debug)]
pub(super) struct Place {
    home: PathBuf,
    /// `None` if we are not root; the server then runs as our user.
    user: Option<User>,
}

#[derive(Clone, Copy, Debug)]
struct User {
    uid: u32,
    gid: u32,
}

impl Place {
    /// Chooses the directory and the user. The same `data_dir` always leads to the same place.
    pub fn choose(data_dir: &Path) -> Result<Place, StartError> {
        let home = make_home(data_dir)?;
        let owner = cluster_owner(&home)?;
        if effective_uid() != 0 {
            return match owner {
                Some(User { uid, .. }) if uid != effective_uid() => {
                    let path = home.join("data");
                    Err(StartError::NotOurs { path, uid })
                }
                _ => Ok(Place { home, user: None }),
            };
        }
        let user = match owner {
            Some(owner) => owner,
            None => unprivileged_user()?,
        };
        let place = Place { home, user: Some(user) };
        match (place.is_reachable()?, owner) {
            (true, _) => Ok(place),
            (false, None) => Place::fall_back(&place.home, user),
            (false, Some(User { uid, .. })) => Err(StartError::Unreachable { path: place.home, uid }),
        }
    }

    fn fall_back(unreachable: &Path, user: User) -> Result<Place, StartError> {
        let below_root = unreachable.strip_prefix("/").unwrap_or(unreachable);
        let home = make_home(&Path::new(FALLBACK).join(below_root))?;
        let uid = user.uid;
        log::info!(
            "user {uid}, who runs the private PostgreSQL, cannot reach {}: the cluster is in {}",
            unreachable.display(),
            home.display()
        );
        let user = Some(cluster_owner(&home)?.unwrap_or(user));
        let place = Place { home, user };
        if place.is_reachable()? {
            return Ok(place);
        }
        Err(StartError::Unreachable { path: place.home, uid })
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The user id of the server.
    pub fn uid(&self) -> u32 {
        self.user.map_or_else(effective_uid, |user| user.uid)
    }

    /// A command that runs as the server's user, without our environment.
    ///
    /// The environment may hold secrets, and variables that change how PostgreSQL works.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            // The code recognises some of the server's messages by their English text.
            .env("LC_ALL", "C")
            .current_dir(&self.home)
            .stdin(Stdio::null());
        if let Some(user) = self.user {
            // The standard library also drops root's supplementary groups.
            command.uid(user.uid).gid(user.gid);
        }
        // Whoever started us may have left files open, with locks on them. The server outlives us, and would keep them.
        // SAFETY: it calls close_range or fcntl only, which may be called between fork and exec.
        unsafe { command.pre_exec(close_inherited_files) };
        command
    }

    /// Opens a file in the home directory, and creates it if it does not exist.
    pub fn open_file(&self, name: &str) -> Result<File, StartError> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        open_plain(&mut options, &self.home.join(name))
    }

    /// Makes `path` a directory that the server's user owns and no other user may enter.
    pub fn make_private_directory(&self, path: &Path) -> Result<(), StartError> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(failed("create", path)(error));
            }
            _ => {}
        }
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(path)
            .map_err(|error| open_failed(path, error))?;
        let owner = directory.metadata().map_err(failed("inspect", path))?.uid();
        match self.user {
            Some(user) if owner == 0 => fchown(&directory, Some(user.uid), Some(user.gid))
                .map_err(failed("change the owner of", path))?,
            _ if owner != self.uid() => {
                let path = path.to_owned();
                return Err(StartError::NotOurs { path, uid: owner });
            }
            _ => {}
        }
        directory.set_permissions(Permissions::from_mode(0o700)).map_err(failed("change the mode of", path))
    }

    /// The working directory of a process of the server's user; `None` if the process is dead or a zombie.
    ///
    /// The command runs as the server's user, because in a container root may not inspect the processes of other users.
    pub fn working_directory(&self, pid: u32) -> Option<PathBuf> {
        let output = if Path::new("/proc/self/cwd").exists() {
            let link = format!("/proc/{pid}/cwd");
            self.command("readlink").args(["-n", &link]).output()
        } else {
            // macOS has no /proc. lsof prints three lines, and the last one is `n` and the path.
            let pid = pid.to_string();
            self.command("lsof").args(["-a", "-d", "cwd", "-F", "n", "-p", &pid]).output()
        };
        let answer = output.ok()?.stdout;
        let path = match answer.strip_suffix(b"\n") {
            Some(lines) => lines.rsplit(|byte| *byte == b'\n').next()?.get(1..)?,
            None => &answer,
        };
        (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
    }

    fn is_reachable(&self) -> Result<bool, StartError> {
        match self.command("true").status() {
            Ok(status) => Ok(status.success()),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(false),
            Err(error) => Err(failed("run a program in", &self.home)(error)),
        }
    }
}

/// Opens a plain file, and refuses links.
///
/// An unprivileged user who can write to the directory could plant a link, so that root writes to a file elsewhere.
pub(super) fn open_plain(options: &mut OpenOptions, path: &Path) -> Result<File, StartError> {
    let file = options
        // Without O_NONBLOCK, opening a planted pipe would wait for ever.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
        .map_err(|error| open_failed(path, error))?;
    let metadata = file.metadata().map_err(failed("inspect", path))?;
    if metadata.is_file() && metadata.nlink() == 1 {
        return Ok(file);
    }
    Err(StartError::Unsafe(path.to_owned()))
}

fn open_failed(path: &Path, error: std::io::Error) -> StartError {
    let path = path.to_owned();
    match (fs::symlink_metadata(&path), error.kind()) {
        (Ok(found), ErrorKind::PermissionDenied) if found.uid() != effective_uid() => {
            let uid = found.uid();
            StartError::NotOurs { path, uid }
        }
        (Ok(found), _) if !found.is_file() && !found.is_dir() => StartError::Unsafe(path),
        _ => failed("open", &path)(error),
    }
}

/// The directory of PostgreSQL's programs, of the given major version or of the newest one that we can use.
pub(super) fn find_binaries(major: Option<u32>) -> Option<PathBuf> {
    candidates()
        .into_iter()
        // A directory of the PATH may have links to some of the programs only. All are in the directory of the targets.
        .filter_map(|directory| fs::canonicalize(directory.join("initdb")).ok())
        .filter_map(|initdb| Some(initdb.parent()?.to_owned()))
        .filter_map(|directory| Some((installed_major(&directory)?, directory)))
        .filter(|(found, _)| major.map_or(*found >= OLDEST_MAJOR, |major| *found == major))
        .max_by_key(|(found, _)| *found)
        .map(|(_, directory)| directory)
}

fn candidates() -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for (parent, prefix) in [
        ("/usr/lib/postgresql", ""),          // Debian, Ubuntu
        ("/usr", "pgsql-"),                   // PostgreSQL's own packages for Red Hat
        ("/opt/homebrew/opt", "postgresql@"), // macOS on ARM
        ("/usr/local/opt", "postgresql@"),    // macOS on Intel
    ] {
        for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
            if entry.file_name().as_bytes().starts_with(prefix.as_bytes()) {
                directories.push(entry.path().join("bin"));
            }
        }
    }
    if let Ok(output) = Command::new("pg_config").arg("--bindir").output() {
        let directory = output.stdout.trim_ascii_end();
        directories.push(PathBuf::from(OsStr::from_bytes(directory)));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    directories.extend(std::env::split_paths(&path));
    directories
}

fn installed_major(directory: &Path) -> Option<u32> {
    let postgres = directory.join("postgres");
    let output = Command::new(postgres).arg("--version").output().ok()?;
    // "postgres (PostgreSQL) 17.2 (Debian 17.2-1)", and "18beta1" before a release.
    let text = String::from_utf8(output.stdout).ok()?;
    let version = text.split_whitespace().nth(2)?;
    version.split(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
}

/// Where the cluster of a data directory may be, of those places that exist. Nothing is made.
pub(super) fn homes(data_dir: &Path) -> Vec<PathBuf> {
    let Ok(home) = fs::canonicalize(data_dir) else { return Vec::new() };
    let fallback = Path::new(FALLBACK).join(home.strip_prefix("/").unwrap_or(&home));
    vec![home, fallback]
}

/// Marks all open files but standard input, output and error as closed by exec.
fn close_inherited_files() -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
        // SAFETY: the call takes three numbers, and changes nothing but flags of open files.
        let done = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, CLOSE_RANGE_CLOEXEC) };
        if done == 0 {
            return Ok(());
        }
    }
    // SAFETY: getdtablesize and fcntl have no preconditions; a number that is no open file is an error without effect.
    unsafe {
        for file in 3..libc::getdtablesize().min(65_536) {
            libc::fcntl(file, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}

pub(super) fn make_home(data_dir: &Path) -> Result<PathBuf, StartError> {
    if !data_dir.is_dir() {
        fs::create_dir_all(data_dir).map_err(failed("create", data_dir))?;
        // Root's umask may be strict, but the server's user must reach the cluster inside. The cluster itself is private.
        fs::set_permissions(data_dir, Permissions::from_mode(0o755))
            .map_err(failed("change the mode of", data_dir))?;
    }
    fs::canonicalize(data_dir).map_err(failed("open", data_dir))
}

/// The owner of the cluster, if it exists.
fn cluster_owner(home: &Path) -> Result<Option<User>, StartError> {
    let data = home.join("data");
    match fs::symlink_metadata(&data) {
        Ok(found) if !found.is_dir() => Err(StartError::Unsafe(data)),
        Ok(found) => Ok(Some(User { uid: found.uid(), gid: found.gid() })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("inspect", &data)(error)),
    }
}

/// The user that runs a new cluster for root: the user who called sudo, else `postgres` or `nobody`.
fn unprivileged_user() -> Result<User, StartError> {
    let caller = std::env::var("SUDO_USER").ok();
    let names = caller.as_deref().into_iter().chain(["postgres", "nobody"]);
    names.filter_map(look_up_user).find(|user| user.uid != 0).ok_or(StartError::NoUnprivilegedUser)
}

fn look_up_user(name: &str) -> Option<User> {
    let number = |option| {
        let output = Command::new("id").args([option, "--", name]).output();
        let text = String::from_utf8(output.ok()?.stdout).ok()?;
        text.trim().parse().ok()
    };
    Some(User { uid: number("-u")?, gid: number("-g")? })
}

fn effective_uid() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}
