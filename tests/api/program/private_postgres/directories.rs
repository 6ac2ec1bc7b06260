//! Directories of the private PostgreSQL: any path works, and what is no cluster of ours is refused and left alone.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use oncepay::embedded::{Cluster, StartError};

use super::area::{Area, query};

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
