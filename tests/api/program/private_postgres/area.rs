//! The directory, the processes and the look-ups that the tests of the private PostgreSQL share.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use oncepay::embedded::Cluster;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory for one test. What still runs in it when the test ends is killed.
pub struct Area {
    directory: TempDir,
}

impl Area {
    pub fn new() -> Area {
        let directory = TempDir::new_in("/tmp").unwrap();
        // Root's server runs as a user who must reach the directory.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Area { directory }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    #[track_caller]
    pub fn start(&self) -> Cluster {
        match Cluster::start(self.path()) {
            Ok(cluster) => cluster,
            Err(error) => panic!("{error}"),
        }
    }

    pub fn start_and_kill_everything(&self) {
        let mut user = Peer::start(self);
        user.expect_started();
        user.kill();
        self.kill_everything();
    }

    #[track_caller]
    pub fn wait_for_initdb(&self) {
        let first_tables = self.path().join("data.new/base/1");
        wait_until("initdb is in the middle", || first_tables.exists());
    }

    /// The processes that work in the directory.
    pub fn processes(&self) -> Vec<u32> {
        let directories = fs::read_dir("/proc").unwrap().flatten();
        directories
            .filter(|entry| {
                fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.path()))
            })
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }

    pub fn kill_everything(&self) {
        wait_until("every process in the directory is dead", || {
            let processes = self.processes();
            processes.iter().for_each(|pid| kill(*pid, libc::SIGKILL));
            processes.is_empty()
        });
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        self.kill_everything();
    }
}

/// Another process that uses the cluster of an area.
pub struct Peer {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    pub fn start(area: &Area) -> Peer {
        Peer::spawn(&mut Peer::command(area))
    }

    pub fn start_as(area: &Area, user: u32) -> Peer {
        Peer::spawn(Peer::command(area).uid(user).gid(user))
    }

    fn command(area: &Area) -> Command {
        let (_, module) = module_path!().split_once("::").unwrap();
        // This link also leads to the binary when the user of the process cannot reach its directory.
        let mut command = Command::new("/proc/self/exe");
        command
            .arg(format!("{module}::another_process_uses_the_cluster"))
            .args(["--exact", "--ignored", "--nocapture"])
            .env("ONCEPAY_TEST_DATA_DIR", area.path())
            .current_dir("/")
            .process_group(0);
        // Whoever runs the tests in the background may ignore SIGINT, and children inherit that.
        // SAFETY: signal is safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            })
        };
        command
    }

    fn spawn(command: &mut Command) -> Peer {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = process.stdin.take().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Peer { process, stdin, stdout }
    }

    /// Waits for the server, and returns the process id of its postmaster.
    #[track_caller]
    pub fn expect_started(&mut self) -> u32 {
        self.expect("started ").parse().unwrap()
    }

    #[track_caller]
    pub fn expect_refused(mut self) -> String {
        let message = self.expect("refused ");
        self.process.wait().unwrap();
        message
    }

    #[track_caller]
    pub fn leave(mut self) {
        self.stdin.write_all(b"\n").unwrap();
        self.expect("left");
        assert!(self.process.wait().unwrap().success());
    }

    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// What a terminal does at Ctrl-C.
    pub fn interrupt(mut self) {
        let group = i32::try_from(self.process.id()).unwrap();
        // SAFETY: kill only sends a signal, to the process group that this value started.
        unsafe { libc::kill(-group, libc::SIGINT) };
        self.process.wait().unwrap();
    }

    #[track_caller]
    fn expect(&mut self, word: &str) -> String {
        let mut said = String::new();
        loop {
            let mut line = String::new();
            let length = self.stdout.read_line(&mut line).unwrap();
            assert!(length > 0, "the process ended, having said: {said}");
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
            said.push_str(&line);
        }
    }
}

#[test]
#[ignore = "the other tests run it as another process"]
fn another_process_uses_the_cluster() {
    let Some(data_dir) = std::env::var_os("ONCEPAY_TEST_DATA_DIR") else {
        return;
    };
    match Cluster::start(Path::new(&data_dir)) {
        Ok(cluster) => {
            println!("\nstarted {}", cluster.postmaster_pid().unwrap());
            let _ = std::io::stdin().read(&mut [0]);
            cluster.stop();
            println!("\nleft");
        }
        Err(error) => println!("\nrefused {error}"),
    }
}

pub fn psql(cluster: &Cluster) -> Command {
    let mut command = Command::new(cluster.binaries().join("psql"));
    command.args(["--no-psqlrc", "--no-align", "--tuples-only", "--quiet"]).args([
        "-v",
        "ON_ERROR_STOP=1",
        "-d",
        &cluster.url("postgres"),
    ]);
    command
}

#[track_caller]
pub fn query(cluster: &Cluster, sql: &str) -> String {
    let output = psql(cluster).args(["-c", sql]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{sql}: {message}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Whether the process lives; a zombie does not.
pub fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|text| !text.rsplit(')').next().unwrap().starts_with(" Z"))
}

pub fn kill(pid: u32, signal: i32) {
    // SAFETY: kill only sends a signal, to a process that this test started.
    unsafe { libc::kill(i32::try_from(pid).unwrap(), signal) };
}

pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
