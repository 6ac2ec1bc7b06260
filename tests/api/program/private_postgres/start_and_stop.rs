//! Starts and stops of the private PostgreSQL: one server for all its users, which ends with the last of them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::area::{Area, Peer, kill, psql, query, runs, wait_until};

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
