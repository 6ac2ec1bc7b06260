//! Operating-system users of the private PostgreSQL: root never runs the server itself, and nobody opens the cluster of another.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use oncepay::embedded::{Cluster, StartError};

use super::area::{Area, Peer, is_root, query, runs};

const NOBODY: u32 = 65534;

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

fn needs_root(why: &str) -> bool {
    if !is_root() {
        println!("skipped: it takes root {why}");
    }
    is_root()
}
