//! Crashes of the private PostgreSQL and of its users: the next start finds every acknowledged row.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use oncepay::embedded::Cluster;

use super::area::{Area, Peer, is_root, kill, psql, query, runs, wait_until};

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

#[track_caller]
fn replace_first_line(path: &Path, line: &str) {
    let text = fs::read_to_string(path).unwrap();
    let (_, others) = text.split_once('\n').unwrap();
    fs::write(path, format!("{line}\n{others}")).unwrap();
}
