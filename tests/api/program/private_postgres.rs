//! The private PostgreSQL, with everything that can go wrong around it.
//!
//! Every test has a directory, a cluster and processes of its own. Where a process must die, or be another user, it is
//! this test binary once more, running `another_process_uses_the_cluster`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use oncepay::embedded::{Cluster, StartError};
use tempfile::TempDir;

const NOBODY: u32 = 65534;
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_new_cluster_is_durable_and_private() {
    let area = Area::new();
    let cluster = area.start();

    assert_eq!(query(&cluster, "SHOW fsync"), "on");
    assert_eq!(query(&cluster, "SHOW synchronous_commit"), "on");
    assert_eq!(query(&cluster, "SHOW full_page_writes"), "on");
    assert_eq!(query(&cluster, "SHOW data_checksums"), "on");
    assert_eq!(query(&cluster, "SHOW server_encoding"), "UTF8");
    assert_eq!(query(&cluster, "SHOW max_connections"), "200");
    assert_eq!(query(&cluster, "SHOW listen_addresses"), "");
    assert_eq!(query(&cluster, "SELECT current_user"), "oncepay");
    assert_eq!(query(&cluster, "SHOW is_superuser"), "on");
    for private in ["data", "socket"] {
        let metadata = fs::metadata(cluster.home().join(private)).unwrap();
        assert_eq!(metadata.mode() & 0o777, 0o700, "{private}");
    }
}

#[test]
fn a_stop_ends_the_server_and_a_start_finds_the_data_again() {
    let area = Area::new();
    let cluster = area.start();
    let pid = cluster.postmaster_pid().unwrap();
    query(&cluster, "CREATE TABLE kept AS SELECT 42 AS answer");
    cluster.stop();
    assert!(!runs(pid));

    let cluster = area.start();
    assert_eq!(query(&cluster, "SELECT answer FROM kept"), "42");
}

#[test]
fn a_second_user_attaches_and_the_last_one_to_leave_stops_the_server() {
    let area = Area::new();
    let first = area.start();
    let pid = first.postmaster_pid().unwrap();
    let second = area.start();
    let mut third = Peer::start(&area);
    assert_eq!(second.postmaster_pid(), Some(pid));
    assert_eq!(third.expect_started(), pid);

    first.stop();
    assert_eq!(query(&second, "SELECT 1"), "1");
    second.stop();
    assert!(runs(pid));
    third.leave();
    assert!(!runs(pid));
}

#[test]
fn several_starters_at_once_share_one_server() {
    let area = Area::new();
    let mut peers: Vec<Peer> = (0..4).map(|_| Peer::start(&area)).collect();
    let pids: Vec<u32> = peers.iter_mut().map(Peer::expect_started).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "{pids:?}");

    let last = peers.pop().unwrap();
    peers.into_iter().for_each(Peer::leave);
    assert!(runs(pids[0]));
    last.leave();
    assert!(!runs(pids[0]));
}

#[test]
fn starters_and_leavers_that_overlap_always_have_a_server() {
    let area = Area::new();
    area.start().stop();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..4 {
                    let cluster = area.start();
                    assert_eq!(query(&cluster, "SELECT 1"), "1");
                }
            });
        }
    });
    assert!(area.processes().is_empty());
}

#[test]
fn a_killed_user_leaves_the_server_to_the_next_one() {
    let area = Area::new();
    let mut killed = Peer::start(&area);
    let pid = killed.expect_started();
    killed.kill();
    assert!(runs(pid));

    let next = area.start();
    assert_eq!(next.postmaster_pid(), Some(pid));
    next.stop();
    assert!(!runs(pid));
}

#[test]
fn a_starter_killed_in_initdb_leaves_nothing_in_the_way() {
    let area = Area::new();
    let starter = Peer::start(&area);
    area.wait_for_initdb();
    starter.kill();

    let cluster = area.start();
    assert_eq!(query(&cluster, "SELECT 1"), "1");
    assert!(!cluster.home().join("data.new").exists());
}

#[test]
fn a_starter_killed_together_with_initdb_leaves_nothing_in_the_way() {
    let area = Area::new();
    let starter = Peer::start(&area);
    area.wait_for_initdb();
    starter.kill();
    area.kill_everything();
    assert!(!area.data().exists());

    let cluster = area.start();
    assert_eq!(query(&cluster, "SELECT 1"), "1");
    assert!(!cluster.home().join("data.new").exists());
}

#[test]
fn a_killed_postmaster_is_replaced_while_its_user_lives() {
    let area = Area::new();
    let first = area.start();
    let pid = first.postmaster_pid().unwrap();
    kill(pid, libc::SIGKILL);
    // It is a child of this process, so it stays behind as a zombie.
    wait_until("the postmaster is dead", || !runs(pid));

    let second = area.start();
    assert_ne!(second.postmaster_pid(), Some(pid));
    assert_eq!(query(&first, "SELECT 1"), "1");
    second.stop();
    assert_eq!(query(&first, "SELECT 1"), "1");
    first.stop();
    assert!(area.processes().is_empty());
}

#[test]
fn a_killed_postmaster_is_not_replaced_before_its_children_have_ended() {
    let area = Area::new();
    let cluster = area.start();
    // A backend notices the death of its postmaster when it waits, and this one computes for two seconds.
    let busy = "DO $$ DECLARE until timestamptz := clock_timestamp() + '2 s'; \
                BEGIN WHILE clock_timestamp() < until LOOP END LOOP; END $$";
    let mut session = psql(&cluster).args(["-c", busy]).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the session computes", || {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'DO%'";
        query(&cluster, active) == "1"
    });
    let started = Instant::now();
    kill(cluster.postmaster_pid().unwrap(), libc::SIGKILL);
    wait_until("the postmaster is dead", || cluster.postmaster_pid().is_none());

    std::thread::scope(|scope| {
        let starter = scope.spawn(|| area.start());
        let log = area.path().join("postgres.log");
        wait_until("a server has refused to start", || {
            fs::read_to_string(&log).unwrap().contains("still in use")
        });
        // The file that keeps a second server away was changed, and not deleted.
        let pid_file = fs::read_to_string(area.data().join("postmaster.pid")).unwrap();
        assert!(pid_file.starts_with("2147483647\n"), "{pid_file}");
        assert!(pid_file.lines().count() >= 7, "{pid_file}");
        let next = starter.join().unwrap();
        assert!(started.elapsed() > Duration::from_secs(1));
        assert_eq!(query(&next, "SELECT 1"), "1");
    });
    session.wait().unwrap();
}

#[test]
fn no_acknowledged_row_is_lost_when_everything_is_killed() {
    let area = Area::new();
    let cluster = area.start();
    query(&cluster, "CREATE TABLE kept (id bigint PRIMARY KEY)");
    drop(cluster);
    let mut last_acknowledged = 0;
    for _ in 0..3 {
        let mut user = Peer::start(&area);
        user.expect_started();
        let cluster = area.start();
        last_acknowledged = insert_until_killed(&cluster, last_acknowledged + 1, || {
            user.kill();
            area.kill_everything();
        });
        assert!(cluster.postmaster_pid().is_none());
        let again = area.start();
        let missing = format!(
            "SELECT count(*) FROM generate_series(1, {last_acknowledged}) AS id \
             WHERE NOT EXISTS (SELECT FROM kept WHERE kept.id = id.id)"
        );
        assert_eq!(query(&again, &missing), "0");
        // The one after the last may have been committed without an acknowledgement.
        last_acknowledged = query(&again, "SELECT max(id) FROM kept").parse().unwrap();
    }
    assert!(last_acknowledged > 3);
}

#[test]
fn a_recycled_process_id_keeps_nobody_out_and_its_process_is_left_alone() {
    let area = Area::new();
    area.start_and_kill_everything();
    let owner = fs::metadata(area.data()).unwrap();
    let mut sleeper = Command::new("sleep");
    // The server yields only to processes that its user could signal.
    if is_root() {
        sleeper.uid(owner.uid()).gid(owner.gid());
    }
    let mut foreign = sleeper.arg("600").current_dir(area.path()).spawn().unwrap();
    for file in ["data/postmaster.pid", "socket/.s.PGSQL.5432.lock"] {
        replace_first_line(&area.path().join(file), &foreign.id().to_string());
    }

    let cluster = area.start();
    assert_ne!(cluster.postmaster_pid(), Some(foreign.id()));
    assert_eq!(query(&cluster, "SELECT 1"), "1");
    cluster.stop();
    assert!(matches!(foreign.try_wait(), Ok(None)));
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

#[test]
fn a_server_that_is_stopping_is_waited_for_and_started_again() {
    let area = Area::new();
    let cluster = area.start();
    let pid = cluster.postmaster_pid().unwrap();
    let mut session = psql(&cluster).args(["-c", "SELECT pg_sleep(1)"]).spawn().unwrap();
    wait_until("the session sleeps", || {
        let active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(1)'";
        query(&cluster, active) == "1"
    });
    // A smart shutdown: the server ends when the session does.
    kill(pid, libc::SIGTERM);
    let pid_file = area.data().join("postmaster.pid");
    wait_until("the server is stopping", || {
        fs::read_to_string(&pid_file).is_ok_and(|text| text.contains("stopping"))
    });

    let next = area.start();
    assert_ne!(next.postmaster_pid(), Some(pid));
    assert_eq!(query(&next, "SELECT 1"), "1");
    session.wait().unwrap();
}

#[test]
fn the_server_outlives_ctrl_c_and_holds_none_of_our_files() {
    let area = Area::new();
    let mut user = Peer::start(&area);
    let pid = user.expect_started();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
        let entry = entry.unwrap();
        let target = fs::read_link(entry.path()).unwrap_or_default();
        assert!(!target.to_string_lossy().ends_with(".lock"), "{target:?}");
        if entry.file_name() == "0" {
            assert_eq!(target, Path::new("/dev/null"));
        }
    }
    user.interrupt();
    sleep(Duration::from_millis(300));
    assert!(runs(pid));
    assert_eq!(area.start().postmaster_pid(), Some(pid));
}

#[test]
fn a_path_with_every_kind_of_character_works() {
    let area = Area::new();
    for name in ["with spaces", "a b's \"data\" 100% @home:5432/?x=1&y#ü\\", "a, b"] {
        let cluster = Cluster::start(&area.path().join(name)).unwrap();
        assert_eq!(query(&cluster, "SELECT 1"), "1");
    }
}

#[test]
fn a_path_too_long_for_a_socket_works() {
    let area = Area::new();
    let data_dir = area.path().join("x".repeat(120));
    let first = Cluster::start(&data_dir).unwrap();
    assert!(first.url("postgres").contains("%2Ftmp%2Foncepay-"));
    assert_eq!(query(&first, "SELECT 1"), "1");
    let second = Cluster::start(&data_dir).unwrap();
    assert_eq!(second.postmaster_pid(), first.postmaster_pid());
    let socket_directory = query(&first, "SHOW unix_socket_directories");
    first.stop();
    second.stop();
    assert!(!Path::new(&socket_directory).exists());
}

#[test]
fn a_relative_path_is_the_same_cluster() {
    let area = Area::new();
    let cluster = area.start();
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    let relative = up.join(area.path().strip_prefix("/").unwrap());
    let same = Cluster::start(&relative).unwrap();
    assert_eq!(same.postmaster_pid(), cluster.postmaster_pid());
}

#[test]
fn a_planted_link_is_refused_and_what_it_names_stays_unchanged() {
    let area = Area::new();
    area.start_and_kill_everything();
    let target = area.path().join("target");
    fs::write(&target, "1\nprecious\n").unwrap();
    for name in ["postgres.log", "start.lock", "users.lock", "data/postmaster.pid"] {
        let path = area.path().join(name);
        let aside = area.path().join("aside");
        fs::rename(&path, &aside).unwrap();

        symlink(&target, &path).unwrap();
        let refused = Cluster::start(area.path()).unwrap_err();
        assert!(matches!(refused, StartError::Unsafe(_)), "{refused}");
        fs::remove_file(&path).unwrap();

        fs::hard_link(&target, &path).unwrap();
        let refused = Cluster::start(area.path()).unwrap_err();
        assert!(matches!(refused, StartError::Unsafe(_)), "{refused}");
        fs::remove_file(&path).unwrap();

        fs::rename(&aside, &path).unwrap();
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "1\nprecious\n");
    assert_eq!(query(&area.start(), "SELECT 1"), "1");
}

#[test]
fn a_directory_that_is_no_cluster_is_refused() {
    let area = Area::new();
    fs::create_dir(area.data()).unwrap();
    fs::write(area.data().join("letter.txt"), "dear").unwrap();
    let refused = Cluster::start(area.path()).unwrap_err();
    assert!(matches!(refused, StartError::NotACluster(_)), "{refused}");
    assert!(area.data().join("letter.txt").exists());
}

#[test]
fn a_cluster_of_a_version_that_is_not_installed_names_what_to_install() {
    let area = Area::new();
    fs::create_dir(area.data()).unwrap();
    fs::write(area.data().join("PG_VERSION"), "99\n").unwrap();
    let refused = Cluster::start(area.path()).unwrap_err().to_string();
    assert!(refused.contains("apt-get install postgresql-99"), "{refused}");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let area = Area::new();
    area.start().stop();
    let settings = area.data().join("postgresql.conf");
    let good = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, format!("{good}\nnonsense = 1\n")).unwrap();
    let refused = Cluster::start(area.path()).unwrap_err().to_string();
    assert!(refused.contains("nonsense"), "{refused}");
    fs::write(&settings, good).unwrap();
    assert_eq!(query(&area.start(), "SELECT 1"), "1");
}

#[test]
fn an_ordinary_user_runs_the_server_itself() {
    if !needs_root("to become another user") {
        return;
    }
    let area = Area::new();
    chown(area.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let mut user = Peer::start_as(&area, NOBODY);
    let pid = user.expect_started();
    let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    assert_eq!(owner, NOBODY);
    user.leave();
    assert!(!runs(pid));
}

#[test]
fn root_shares_the_server_of_an_ordinary_user_and_runs_it_as_that_user() {
    if !needs_root("to become another user") {
        return;
    }
    let area = Area::new();
    chown(area.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let mut user = Peer::start_as(&area, NOBODY);
    let pid = user.expect_started();
    let root = area.start();
    assert_eq!(root.postmaster_pid(), Some(pid));
    user.leave();
    root.stop();

    let root = area.start();
    let pid = root.postmaster_pid().unwrap();
    let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    assert_eq!(owner, NOBODY);
    let mut user = Peer::start_as(&area, NOBODY);
    assert_eq!(user.expect_started(), pid);
    root.stop();
    user.leave();
    assert!(!runs(pid));
}

#[test]
fn a_cluster_of_another_user_is_refused() {
    if !needs_root("to become another user") {
        return;
    }
    let area = Area::new();
    area.start().stop();
    let refused = Peer::start_as(&area, NOBODY).expect_refused();
    assert!(refused.contains("belongs to user"), "{refused}");

    // Neither may it be a directory where only others may write.
    let area = Area::new();
    let refused = Peer::start_as(&area, NOBODY).expect_refused();
    assert!(refused.contains("ermission denied"), "{refused}");
}

#[test]
fn root_starts_the_server_as_another_user_without_groups_of_root() {
    if !needs_root("to start the server as another user") {
        return;
    }
    let area = Area::new();
    let cluster = area.start();
    let pid = cluster.postmaster_pid().unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = |name: &str| {
        let found = status.lines().find(|line| line.starts_with(name));
        found.unwrap().split_whitespace().skip(1).collect::<Vec<_>>()
    };
    assert!(!line("Uid:").contains(&"0"), "{status}");
    assert!(!line("Gid:").contains(&"0"), "{status}");
    assert!(line("Groups:").is_empty(), "{status}");
    for ours in ["postgres.log", "start.lock", "users.lock"] {
        let metadata = fs::metadata(cluster.home().join(ours)).unwrap();
        assert_eq!((metadata.uid(), metadata.mode() & 0o777), (0, 0o600));
    }
}

#[test]
fn root_keeps_the_cluster_elsewhere_if_its_user_cannot_reach_the_directory() {
    if !needs_root("to start the server as another user") {
        return;
    }
    let area = Area::new();
    let locked = area.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    let data_dir = locked.join("data");
    let cluster = Cluster::start(&data_dir).unwrap();
    let elsewhere = cluster.home().to_owned();
    assert!(elsewhere.starts_with("/var/lib/oncepay"), "{elsewhere:?}");
    query(&cluster, "CREATE TABLE kept AS SELECT 42 AS answer");
    cluster.stop();

    let cluster = Cluster::start(&data_dir).unwrap();
    assert_eq!(query(&cluster, "SELECT answer FROM kept"), "42");
    cluster.stop();
    fs::remove_dir_all(&elsewhere).unwrap();
    // The directories above it, as far as no other cluster is in them.
    for parent in elsewhere.ancestors().skip(1) {
        if fs::remove_dir(parent).is_err() {
            break;
        }
    }
}

#[test]
fn root_names_the_user_who_can_no_longer_reach_its_cluster() {
    if !needs_root("to start the server as another user") {
        return;
    }
    let area = Area::new();
    area.start().stop();
    fs::set_permissions(area.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let refused = Cluster::start(area.path()).unwrap_err();
    assert!(matches!(refused, StartError::Unreachable { .. }), "{refused}");
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

/// A directory for one test. What still runs in it when the test ends is killed.
struct Area {
    directory: TempDir,
}

impl Area {
    fn new() -> Area {
        let directory = TempDir::new_in("/tmp").unwrap();
        // Root's server runs as a user who must reach the directory.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Area { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    #[track_caller]
    fn start(&self) -> Cluster {
        match Cluster::start(self.path()) {
            Ok(cluster) => cluster,
            Err(error) => panic!("{error}"),
        }
    }

    fn start_and_kill_everything(&self) {
        let mut user = Peer::start(self);
        user.expect_started();
        user.kill();
        self.kill_everything();
    }

    #[track_caller]
    fn wait_for_initdb(&self) {
        let first_tables = self.path().join("data.new/base/1");
        wait_until("initdb is in the middle", || first_tables.exists());
    }

    /// The processes that work in the directory.
    fn processes(&self) -> Vec<u32> {
        let directories = fs::read_dir("/proc").unwrap().flatten();
        directories
            .filter(|entry| {
                fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.path()))
            })
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    }

    fn kill_everything(&self) {
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
struct Peer {
    process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    fn start(area: &Area) -> Peer {
        Peer::spawn(&mut Peer::command(area))
    }

    fn start_as(area: &Area, user: u32) -> Peer {
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
    fn expect_started(&mut self) -> u32 {
        self.expect("started ").parse().unwrap()
    }

    #[track_caller]
    fn expect_refused(mut self) -> String {
        let message = self.expect("refused ");
        self.process.wait().unwrap();
        message
    }

    #[track_caller]
    fn leave(mut self) {
        self.stdin.write_all(b"\n").unwrap();
        self.expect("left");
        assert!(self.process.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// What a terminal does at Ctrl-C.
    fn interrupt(mut self) {
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

/// Inserts rows one by one, and calls `kill` in the middle. Returns the last one that the server acknowledged.
fn insert_until_killed(cluster: &Cluster, first: u64, kill: impl FnOnce()) -> u64 {
    let mut session =
        psql(cluster).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut statements = session.stdin.take().unwrap();
    let writer = std::thread::spawn(move || {
        for id in first.. {
            let insert = format!("INSERT INTO kept VALUES ({id}) RETURNING id;\n");
            if statements.write_all(insert.as_bytes()).is_err() {
                return;
            }
        }
    });
    let mut acknowledged = BufReader::new(session.stdout.take().unwrap()).lines();
    let mut last = acknowledged.next().unwrap().unwrap();
    sleep(Duration::from_millis(200));
    kill();
    for line in acknowledged {
        last = line.unwrap();
    }
    session.wait().unwrap();
    writer.join().unwrap();
    last.parse().unwrap()
}

fn psql(cluster: &Cluster) -> Command {
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
fn query(cluster: &Cluster, sql: &str) -> String {
    let output = psql(cluster).args(["-c", sql]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{sql}: {message}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
fn replace_first_line(path: &Path, line: &str) {
    let text = fs::read_to_string(path).unwrap();
    let (_, others) = text.split_once('\n').unwrap();
    fs::write(path, format!("{line}\n{others}")).unwrap();
}

#[track_caller]
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        sleep(Duration::from_millis(5));
    }
}

/// Whether the process lives; a zombie does not.
fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|text| !text.rsplit(')').next().unwrap().starts_with(" Z"))
}

fn kill(pid: u32, signal: i32) {
    // SAFETY: kill only sends a signal, to a process that this test started.
    unsafe { libc::kill(i32::try_from(pid).unwrap(), signal) };
}

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn needs_root(why: &str) -> bool {
    if !is_root() {
        println!("skipped: it takes root {why}");
    }
    is_root()
}
