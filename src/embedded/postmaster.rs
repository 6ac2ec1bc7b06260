//! Creates the cluster with `initdb`, starts its server, and stops it with `pg_ctl`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::machine::{Place, find_binaries, open_plain};
use super::{StartError, failed};

const SUPERUSER: &str = "oncepay";
/// Only a part of the socket's name, because the server does not listen on TCP.
const PORT: u16 = 5432;
const MAX_CONNECTIONS: u32 = 200;
/// The longest path that fits in a `sockaddr_un`, in bytes.
const LONGEST_SOCKET_PATH: usize = if cfg!(target_os = "macos") { 103 } else { 107 };
/// More than any system's largest process id, and still a positive `pid_t`.
const IMPOSSIBLE_PID: &str = "2147483647";
/// The longest wait for a server to be ready, which includes recovery after a crash and the end of a killed server's
/// processes.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a server may take to stop before it is stopped in the mode `immediate`.
const STOP_PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
const RETRY: Duration = Duration::from_millis(200);

/// An existing cluster, with the programs and the user that run its server.
#[derive(Debug)]
pub(super) struct Server {
    place: Place,
    binaries: PathBuf,
    data: PathBuf,
    socket_directory: PathBuf,
    log: File,
}

/// The state of the server, from `postmaster.pid` and the process that it names.
enum Status {
    Gone,
    /// The server starts or recovers.
    Busy(u32),
    Stopping(u32),
    Ready(u32),
}

impl Server {
    /// Finds PostgreSQL's programs, and creates the cluster if it does not exist. The caller holds `start_lock`.
    pub fn prepare(place: Place, start_lock: &File) -> Result<Server, StartError> {
        let data = place.home().join("data");
        let exists = data.is_dir();
        let server = Server {
            binaries: binaries_for(exists.then_some(&data))?,
            socket_directory: socket_directory(&place)?,
            log: place.open_file("postgres.log")?,
            data,
            place,
        };
        if !exists {
            server.create(start_lock)?;
        }
        Ok(server)
    }

    /// Starts the server if it does not run, waits until it is ready, and returns the child if it started one.
    pub fn bring_up(&self) -> Result<Option<Child>, StartError> {
        let deadline = Instant::now() + PATIENCE;
        let mut log_start = 0;
        let mut child = None;
        let mut must_have_stopped = Instant::now() + STOP_PATIENCE;
        while Instant::now() < deadline {
            match self.status() {
                Status::Ready(_) => return Ok(child),
                // A server that is asked to stop while it recovers from a crash of one of its processes may never stop.
                Status::Stopping(_) if Instant::now() > must_have_stopped => {
                    self.stop("immediate")?;
                    must_have_stopped = deadline;
                }
                Status::Gone if has_ended(&mut child) => {
                    if child.is_some() {
                        self.expect_leftovers(log_start)?;
                        sleep(RETRY);
                    }
                    log_start = self.log_length()?;
                    child = Some(self.launch()?);
                }
                Status::Gone | Status::Busy(_) | Status::Stopping(_) => {}
            }
            sleep(POLL);
        }
        Err(StartError::TooSlow { log: self.log_path(), seconds: PATIENCE.as_secs() })
    }

    /// Ends all sessions, stops the server and waits for its end.
    ///
    /// A failure is only logged: the next start attaches to the server that still runs.
    pub fn shut_down(&self) {
        let Some(pid) = self.pid() else { return };
        // After an "immediate" stop, the next start recovers, and nothing that was committed is lost.
        if let Err(error) = self.stop("fast").or_else(|_| self.stop("immediate")) {
            log::error!("the private PostgreSQL did not stop: {error}");
        }
        // pg_ctl waits until the pid file is gone. The process ends a moment later.
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.runs_here(pid) && Instant::now() < deadline {
            sleep(POLL);
        }
        if self.socket_directory.parent() != Some(self.home()) {
            // This fails if the server still runs, because the directory is then not empty.
            let _ = fs::remove_dir(&self.socket_directory);
        }
    }

    fn stop(&self, mode: &str) -> Result<(), StartError> {
        let output = self
            .place
            .command(self.binaries.join("pg_ctl"))
            .args(["stop", "--mode", mode, "--wait", "--timeout"])
            .arg(STOP_PATIENCE.as_secs().to_string())
            .arg("--pgdata")
            .arg(&self.data)
            .output()
            .map_err(failed("run pg_ctl in", &self.binaries))?;
        if output.status.success() {
            return Ok(());
        }
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(StartError::Ended { log: self.log_path(), output })
    }

    pub fn url(&self, database: &str) -> String {
        let host = percent_encode(self.socket_directory.as_os_str().as_bytes());
        let database = percent_encode(database.as_bytes());
        format!("postgresql://{SUPERUSER}@{host}:{PORT}/{database}")
    }

    pub fn pid(&self) -> Option<u32> {
        match self.status() {
            Status::Gone => None,
            Status::Busy(pid) | Status::Stopping(pid) | Status::Ready(pid) => Some(pid),
        }
    }

    pub fn binaries(&self) -> &Path {
        &self.binaries
    }

    pub fn home(&self) -> &Path {
        self.place.home()
    }

    fn create(&self, start_lock: &File) -> Result<(), StartError> {
        // Only a complete cluster is renamed to `data`. An incomplete one of a killed process is removed here.
        let unfinished = self.home().join("data.new");
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("remove", &unfinished)(error));
            }
            _ => {}
        }
        self.place.make_private_directory(&unfinished)?;
        log::info!("creating a PostgreSQL cluster in {}", self.data.display());
        self.run_initdb(&unfinished, start_lock)?;
        fs::rename(&unfinished, &self.data).map_err(failed("rename", &unfinished))?;
        File::open(self.home()).and_then(|home| home.sync_all()).map_err(failed("sync", self.home()))
    }

    fn run_initdb(&self, directory: &Path, start_lock: &File) -> Result<(), StartError> {
        let log_start = self.log_length()?;
        let status = self
            .place
            .command(self.binaries.join("initdb"))
            .args(["--username", SUPERUSER, "--auth=trust", "--data-checksums"])
            // The C locale has the same order on every machine, and an update of the C library does not change it.
            .args(["--encoding=UTF8", "--locale=C", "--no-instructions"])
            .arg("--pgdata")
            .arg(directory)
            // initdb survives if this process is killed. It inherits the lock and writes to a file (a pipe would break),
            // so the next process that starts waits until initdb has ended.
            .stdin(start_lock.try_clone().map_err(failed("share", directory))?)
            .stdout(self.share_log()?)
            .stderr(self.share_log()?)
            .status()
            .map_err(failed("run initdb in", &self.binaries))?;
        if status.success() {
            return Ok(());
        }
        Err(StartError::Initdb { path: directory.to_owned(), output: self.log_since(log_start)? })
    }

    /// Starts a postmaster. The caller knows that none runs.
    fn launch(&self) -> Result<Child, StartError> {
        // Only the server's user and root can reach the socket, so trust authentication is safe.
        self.place.make_private_directory(&self.socket_directory)?;
        // The process ids in these files may belong to other processes by now, and the server would then refuse to start.
        forget_pid(&self.pid_file())?;
        forget_pid(&self.socket_directory.join(format!(".s.PGSQL.{PORT}.lock")))?;
        // The settings that make commits durable (fsync, synchronous_commit, full_page_writes) are on by default.
        self.place
            .command(self.binaries.join("postgres"))
            .arg("-D")
            .arg(&self.data)
            .arg("-k")
            .arg(self.socket_directory_for_server())
            .args(["-c", "listen_addresses=", "-c", &format!("port={PORT}")])
            .args(["-c", &format!("max_connections={MAX_CONNECTIONS}")])
            .args(["-c", "log_destination=stderr", "-c", "logging_collector=off"])
            .stdout(self.share_log()?)
            .stderr(self.share_log()?)
            // Ctrl-C goes to the terminal's process group, and the server must run until we stop using it.
            .process_group(0)
            .spawn()
            .map_err(failed("run postgres in", &self.binaries))
    }

    /// Checks that the server refused to start only because processes of a killed server still run.
    ///
    /// # Errors
    /// The server ended for another reason.
    fn expect_leftovers(&self, log_start: u64) -> Result<(), StartError> {
        let output = self.log_since(log_start)?;
        if output.contains("already exists") || output.contains("still in use") {
            log::info!("waiting for processes of the previous PostgreSQL to end");
            return Ok(());
        }
        let log = self.log_path();
        Err(StartError::Ended { log, output })
    }

    fn status(&self) -> Status {
        let mut text = String::new();
        let read = open_plain(OpenOptions::new().read(true), &self.pid_file())
            .map(|mut file| file.read_to_string(&mut text));
        if !matches!(read, Ok(Ok(_))) {
            return Status::Gone;
        }
        let mut lines = text.lines();
        // A minus sign marks a server that a person runs in single-user mode.
        let first = lines.next().unwrap_or_default().trim_start_matches('-');
        match (first.parse(), lines.nth(6).map(str::trim)) {
            (Ok(pid), _) if !self.runs_here(pid) => Status::Gone,
            (Ok(pid), Some("ready")) => Status::Ready(pid),
            (Ok(pid), Some("stopping")) => Status::Stopping(pid),
            (Ok(pid), _) => Status::Busy(pid),
            (Err(_), _) => Status::Gone,
        }
    }

    fn runs_here(&self, pid: u32) -> bool {
        self.place.working_directory(pid).as_ref() == Some(&self.data)
    }

    /// The path of the socket directory for the server, relative to the data directory if possible.
    ///
    /// The server's setting is a list, in which some characters of an absolute path would need quotes.
    fn socket_directory_for_server(&self) -> PathBuf {
        match self.socket_directory.strip_prefix(self.home()) {
            Ok(below_home) => Path::new("..").join(below_home),
            Err(_) => self.socket_directory.clone(),
        }
    }

    fn pid_file(&self) -> PathBuf {
        self.data.join("postmaster.pid")
    }

    fn log_path(&self) -> PathBuf {
        self.home().join("postgres.log")
    }

    fn share_log(&self) -> Result<File, StartError> {
        let log = self.log.try_clone();
        log.map_err(failed("share", &self.log_path()))
    }

    fn log_length(&self) -> Result<u64, StartError> {
        let metadata = self.log.metadata();
        Ok(metadata.map_err(failed("inspect", &self.log_path()))?.len())
    }

    fn log_since(&self, start: u64) -> Result<String, StartError> {
        let mut log = &self.log;
        let mut bytes = Vec::new();
        log.seek(SeekFrom::Start(start))
            .and_then(|_| log.read_to_end(&mut bytes))
            .map_err(failed("read", &self.log_path()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// The programs for the cluster in `data`, or for a new one.
fn binaries_for(data: Option<&PathBuf>) -> Result<PathBuf, StartError> {
    let Some(data) = data else {
        return find_binaries(None).ok_or(StartError::NoBinaries);
    };
    let major = fs::read_to_string(data.join("PG_VERSION"))
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| StartError::NotACluster(data.clone()))?;
    find_binaries(Some(major)).ok_or_else(|| StartError::OtherMajor { path: data.clone(), major })
}

fn socket_directory(place: &Place) -> Result<PathBuf, StartError> {
    let home = place.home();
    let directory = home.join("socket");
    let socket = directory.join(format!(".s.PGSQL.{PORT}"));
    let socket = socket.as_os_str().as_bytes();
    // libpq takes even an encoded comma for the end of a host.
    if socket.len() <= LONGEST_SOCKET_PATH && !socket.contains(&b',') {
        return Ok(directory);
    }
    // Every process must find the same directory, so its name is made of the identity of the home directory.
    let metadata = fs::metadata(home).map_err(failed("inspect", home))?;
    let (uid, device, inode) = (place.uid(), metadata.dev(), metadata.ino());
    Ok(PathBuf::from(format!("/tmp/oncepay-{uid}-{device:x}-{inode:x}")))
}

fn has_ended(child: &mut Option<Child>) -> bool {
    child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
}

/// Replaces the process id of a dead server in a pid file with one that no process has.
///
/// The file must not be deleted: its line about shared memory prevents a second server from starting while processes of
/// the first one still write to the cluster.
fn forget_pid(path: &Path) -> Result<(), StartError> {
    let mut file = match open_plain(OpenOptions::new().read(true).write(true), path) {
        Err(StartError::Io { cause, .. }) if cause.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed("read", path))?;
    match text.split_once('\n') {
        Some((pid, others)) if pid != IMPOSSIBLE_PID => {
            // The new text is at least as long, so one write replaces the old one and the file is never incomplete.
            let text = format!("{IMPOSSIBLE_PID}\n{others}");
            file.write_all_at(text.as_bytes(), 0).map_err(failed("write", path))
        }
        _ => Ok(()),
    }
}

fn percent_encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
