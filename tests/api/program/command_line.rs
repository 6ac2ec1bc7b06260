//! The program as users run it: from a shell, with flags and variables, in an empty directory or on a server of theirs.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use tempfile::TempDir;

use crate::support::bytes::{Bytes, FORM};
use crate::support::{
    CHARGE, Call, Program, Raw, SECRET_KEY, TestDatabase, eventually, fresh_key, http, oncepay,
};

const SECRET: (&str, &str) = ("SECRET_KEY", SECRET_KEY);

/// A directory that the private cluster's user can reach. What still runs in it afterwards is stopped.
fn directory() -> TempDir {
    let directory = TempDir::new_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn serve_in(directory: &Path, listen: &str) -> Program {
    let data = directory.join("data-dir");
    Program::start_as(oncepay(&["--data-dir", data.to_str().unwrap(), "--listen", listen]))
}

/// The private cluster's own note that it runs.
fn cluster_runs(directory: &Path) -> bool {
    directory.join("data-dir/data/postmaster.pid").exists()
}

fn run(command: &mut Command) -> (Output, String, String) {
    let output = command.output().expect("the program runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let (out, err) = (out.into_owned(), err.into_owned());
    assert!(!err.contains("panicked"), "{err}");
    (output, out, err)
}

/// Runs a line that the program printed, and returns what it answered.
#[track_caller]
fn paste(line: &str) -> String {
    let (output, out, err) = run(Command::new("sh").args(["-c", &format!("{line} --silent --show-error")]));
    assert!(output.status.success(), "{line}: {err}");
    out
}

#[test]
fn in_an_empty_directory_it_serves_what_it_prints_and_keeps_everything_through_any_end() {
    let directory = directory();
    let mut serving = serve_in(directory.path(), "127.0.0.1:0");
    assert_eq!(serving.api_key, "sk_test_oncepay_demo");
    let first = paste(&serving.curl());
    assert!(first.contains(r#""object":"charge""#), "{first}");
    assert_eq!(paste(&serving.curl()), first, "the same key, the same bytes");

    let secret = directory.path().join("data-dir/secret-key");
    assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(directory.path().join("data-dir")).unwrap().mode() & 0o022, 0);
    let secret_before = fs::read(&secret).unwrap();
    assert!(secret_before.len() >= 32);

    // The tools work beside the server, and leave its cluster running.
    let data = directory.path().join("data-dir");
    let tool = |arguments: &[&str]| run(oncepay(arguments).env("DATA_DIR", &data));
    let (audit, said, _) = tool(&["audit"]);
    assert!(audit.status.success(), "{said}");
    let (_, listed, _) = tool(&["api-key", "list"]);
    assert!(listed.contains("demo") && !listed.contains("sk_test_oncepay_demo"), "{listed}");
    assert_eq!(paste(&serving.curl()), first);

    serving.kill();
    let mut serving = serve_in(directory.path(), "127.0.0.1:0");
    assert_eq!(paste(&serving.curl()), first, "kill -9 loses nothing");
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let mut serving = serve_in(directory.path(), "127.0.0.1:0");
        assert!(cluster_runs(directory.path()));
        assert_eq!(paste(&serving.curl()), first);
        serving.signal(signal);
        assert!(serving.wait().success());
    }
    // The first one is still there, so its cluster is; the last one to leave stops it.
    assert!(cluster_runs(directory.path()));
    serving.end();
    assert!(!cluster_runs(directory.path()));
    assert_eq!(fs::read(&secret).unwrap(), secret_before);
}

#[test]
fn a_private_postgres_that_dies_is_started_again() {
    let directory = directory();
    let mut serving = serve_in(directory.path(), "127.0.0.1:0");
    let first = paste(&serving.curl());
    let pid_file = directory.path().join("data-dir/data/postmaster.pid");
    let pid = fs::read_to_string(&pid_file).unwrap().lines().next().unwrap().parse().unwrap();
    // SAFETY: kill only sends a signal, to the postmaster of this test's own cluster.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    eventually("service again", || {
        let line = format!("{} --silent", serving.curl());
        let run = Command::new("sh").args(["-c", &line]).output().unwrap();
        run.stdout == first.as_bytes()
    });
    serving.end();
    assert!(!cluster_runs(directory.path()));
}

#[tokio::test]
async fn on_a_public_address_the_key_is_random_and_lasting_and_the_well_known_key_is_refused() {
    let directory = directory();
    let status = async |serving: &Program, key: &str| {
        let address = SocketAddr::from(([127, 0, 0, 1], serving.address.port()));
        let client = http().build().unwrap();
        Call::new(&client, Method::GET, format!("http://{address}/v1/charges"), key).send().await.status
    };
    let mut serving = serve_in(directory.path(), "127.0.0.1:0");
    assert_eq!(status(&serving, "sk_test_oncepay_demo").await, 200);
    serving.end();
    let mut keys = Vec::new();
    for _ in 0..2 {
        let mut serving = serve_in(directory.path(), "0.0.0.0:0");
        let key = serving.api_key.clone();
        assert!(key.starts_with("sk_test_") && key.len() > 40, "{key}");
        assert_eq!(status(&serving, &key).await, 200);
        assert_eq!(status(&serving, "sk_test_oncepay_demo").await, 401);
        assert!(paste(&serving.curl()).contains(r#""object":"charge""#));
        keys.push(key);
        serving.end();
    }
    assert_eq!(keys[0], keys[1]);
    let kept = directory.path().join("data-dir/demo-api-key");
    assert_eq!(fs::metadata(kept).unwrap().mode() & 0o777, 0o600);
    let mut serving = serve_in(directory.path(), "[::1]:0");
    assert_eq!(serving.api_key, "sk_test_oncepay_demo");
    assert!(paste(&serving.curl().replace("curl ", "curl --globoff ")).contains(r#""object":"charge""#));
    serving.end();
}

#[test]
fn invalid_settings_end_the_program_at_once_with_a_message_that_says_what_to_do() {
    let database = TestDatabase::new();
    let url = ("DATABASE_URL", database.url.as_str());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (taken_flag, nowhere) = (["--listen", &address], ("DATABASE_URL", "postgres://127.0.0.1:1/none"));
    let file = tempfile::NamedTempFile::new().unwrap();
    // Arguments, environment, exit code, and a part of the message.
    type Case<'a> = (&'a [&'a str], &'a [(&'a str, &'a str)], i32, &'a str);
    let cases: [Case<'_>; 16] = [
        (&[], &[url], 1, "SECRET_KEY"),
        (&[], &[url, ("SECRET_KEY", "short")], 1, "shorter than 16 bytes"),
        (&[], &[url, ("SECRET_KEY", "the first is long enough,short")], 1, "shorter than 16 bytes"),
        (&taken_flag, &[url, SECRET], 1, &address),
        (&[], &[nowhere, SECRET], 1, "cannot connect to the database"),
        (&[], &[("DATABASE_URL", "nonsense://"), SECRET], 1, "cannot connect to the database"),
        (&["migrate"], &[nowhere], 1, "cannot connect to the database"),
        (&["--data-dir", file.path().to_str().unwrap()], &[], 1, file.path().to_str().unwrap()),
        (&["--listen", "nowhere"], &[url, SECRET], 2, "--listen"),
        (&["--listen", "127.0.0.1:99999"], &[url, SECRET], 2, "--listen"),
        (&[], &[url, SECRET, ("LISTEN_ADDR", "localhost")], 2, "--listen"),
        (&[], &[url, SECRET, ("IDEMPOTENCY_TTL", "soon")], 2, "as in 24h"),
        (&[], &[url, SECRET, ("DATABASE_POOL_SIZE", "0")], 2, "--pool-size"),
        (&[], &[url, SECRET, ("STATEMENT_CACHE", "maybe")], 2, "true or false"),
        (&["--nonsense"], &[], 2, "--nonsense"),
        (&["api-key", "revoke", "nonsense"], &[url], 2, "nonsense"),
    ];
    for (arguments, environment, code, message) in cases {
        let mut command = oncepay(arguments);
        if !arguments.contains(&"--listen") && environment.iter().all(|(name, _)| *name != "LISTEN_ADDR") {
            command.env("LISTEN_ADDR", "127.0.0.1:0");
        }
        let begun = Instant::now();
        let (output, out, err) = run(command.envs(environment.iter().copied()));
        assert_eq!(output.status.code(), Some(code), "{arguments:?} {environment:?}: {out} {err}");
        assert!(err.contains(message), "{arguments:?} {environment:?}: {err}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{arguments:?} {environment:?}");
    }
}

#[tokio::test]
async fn an_api_key_is_shown_once_works_everywhere_and_revoked_works_nowhere_within_a_second() {
    let database = Arc::new(TestDatabase::new());
    let programs = [Program::start(&database, &[]), Program::start(&database, &[])];
    let tool = |arguments: &[&str]| run(oncepay(arguments).env("DATABASE_URL", &database.url));
    let (output, made, _) = tool(&["api-key", "create", "--account", "shop"]);
    assert!(output.status.success());
    let key = made.trim();
    assert!(key.starts_with("sk_test_"), "standard output is the key alone, for scripts: {made}");
    let charge = |program: &Program, name: &str| {
        program.call_as(key, Method::POST, "/v1/charges").key(name).form(CHARGE)
    };
    for program in &programs {
        charge(program, &fresh_key()).send().await.expect(201);
    }
    let remembered = fresh_key();
    charge(&programs[0], &remembered).send().await.expect(201);

    let (_, listed, _) = tool(&["api-key", "list"]);
    let line = listed.lines().find(|line| line.contains("shop")).expect("it is listed");
    assert!(!listed.contains(key) && line.contains(&key[key.len() - 4..]) && line.ends_with('-'), "{listed}");
    let id = line.split_whitespace().next().unwrap();
    assert!(tool(&["api-key", "revoke", id]).0.status.success());
    let begun = Instant::now();
    for program in &programs {
        while charge(program, &remembered).send().await.status != 401 {
            assert!(begun.elapsed() < Duration::from_secs(1));
        }
        charge(program, &remembered).send().await.expect_error(401, "");
        program.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
    }
    let (again, _, message) = tool(&["api-key", "revoke", id]);
    assert_eq!(again.status.code(), Some(1));
    assert!(message.contains("api-key list"), "{message}");
    let (_, listed, _) = tool(&["api-key", "list"]);
    assert!(!listed.lines().any(|line| line.contains("shop") && line.ends_with('-')), "{listed}");
}

#[tokio::test]
async fn the_audit_command_says_by_its_exit_code_whether_the_books_are_in_order() {
    let database = Arc::new(TestDatabase::new());
    let program = Program::start(&database, &[]);
    program.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
    let audit = || run(oncepay(&["audit"]).env("DATABASE_URL", &database.url));
    let (output, said, _) = audit();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("holds") && !said.contains("BROKEN"), "{said}");
    database.execute("UPDATE events SET type = 'charge.updated'");
    let (output, said, message) = audit();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("BROKEN  every charge has the one event of its beginning"), "{said}");
    assert!(message.contains("broken rules"), "{message}");
}

#[tokio::test]
async fn two_programs_that_start_together_on_an_empty_database_both_serve() {
    let database = Arc::new(TestDatabase::new());
    database.execute("DROP SCHEMA public, readable CASCADE");
    database.execute("CREATE SCHEMA public");
    let starters: Vec<_> = (0..3)
        .map(|_| {
            let database = Arc::clone(&database);
            std::thread::spawn(move || Program::start(&database, &[]))
        })
        .collect();
    let programs: Vec<Program> = starters.into_iter().map(|starter| starter.join().unwrap()).collect();
    let (output, made, _) = run(oncepay(&["api-key", "create"]).env("DATABASE_URL", &database.url));
    assert!(output.status.success());
    let key = fresh_key();
    let mut bodies = Vec::new();
    for program in &programs {
        let call = program.call_as(made.trim(), Method::POST, "/v1/charges").key(&key).form(CHARGE);
        bodies.push(call.send().await.expect(201).bytes);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    database.assert_clean();
    let (output, _, _) = run(oncepay(&["migrate"]).env("DATABASE_URL", &database.url));
    assert!(output.status.success(), "nothing is left to migrate, and that is fine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_under_load_lets_running_requests_finish_and_an_unanswered_request_was_not_done() {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let database = Arc::new(TestDatabase::new());
        let mut program = Program::start(&database, &[]);
        let client = |_| {
            let client = http().timeout(Duration::from_secs(20)).build().unwrap();
            let (url, api_key) = (format!("http://{}/v1/charges", program.address), database.api_key.clone());
            tokio::spawn(async move {
                let (mut answered, mut unanswered) = (Vec::new(), Vec::new());
                while unanswered.len() < 3 {
                    let key = fresh_key();
                    let call = Call::new(&client, Method::POST, url.clone(), &api_key).key(&key).form(CHARGE);
                    match call.try_send().await {
                        Ok(reply) => {
                            reply.expect(201);
                            answered.push(key);
                        }
                        Err(_) => unanswered.push(key),
                    }
                }
                (answered, unanswered)
            })
        };
        let clients: Vec<_> = (0..16).map(client).collect();
        tokio::task::block_in_place(|| eventually("load", || database.count("charges") > 100));
        program.signal(signal);
        let begun = Instant::now();
        assert!(tokio::task::block_in_place(|| program.wait()).success(), "it ends in order");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let mut answered_in_all = 0;
        for client in clients {
            let (answered, unanswered) = client.await.unwrap();
            answered_in_all += answered.len();
            for key in unanswered {
                assert_eq!(database.count(&format!("idempotency_records WHERE key = '{key}'")), 0, "{key}");
            }
        }
        assert_eq!(database.count("charges"), i64::try_from(answered_in_all).unwrap());
        database.assert_clean();
    }
}

#[tokio::test]
async fn a_flag_wins_over_its_variable_and_each_has_its_effect() {
    let database = TestDatabase::new();
    let mut command = oncepay(&["serve", "--require-idempotency-key", "off", "--listen", "127.0.0.1:0"]);
    command.envs([
        SECRET,
        ("DATABASE_URL", &database.url),
        ("LISTEN_ADDR", "127.0.0.1:1"),
        ("LOG_FORMAT", "json"),
    ]);
    command.envs([
        ("REQUIRE_IDEMPOTENCY_KEY", "true"),
        ("IDEMPOTENCY_TTL", "90s"),
        ("STATEMENT_CACHE", "false"),
    ]);
    command.envs([("DATABASE_POOL_SIZE", "2"), ("HTTP_WORKERS", "1")]);
    let mut serving = Program::start_as(command);
    assert!(
        serving.greeting.contains("oncepay listens on") && !serving.greeting.contains("demo_key"),
        "{}",
        serving.greeting
    );
    let post = || serving.call_as(&database.api_key, Method::POST, "/v1/charges").form(CHARGE);
    post().send().await.expect(201);
    for _ in 0..5 {
        let key = fresh_key();
        let first = post().key(&key).send().await.expect(201);
        assert_eq!(post().key(&key).send().await.bytes, first.bytes);
    }
    let lifetime =
        "SELECT extract(epoch FROM max(expires_at - created_at))::bigint AS number FROM idempotency_records";
    assert_eq!(database.number(lifetime), 90);
    let at_most_two = "SELECT count(*) AS number FROM pg_stat_activity \
                       WHERE datname = current_database() AND pid <> pg_backend_pid()";
    eventually("the end of the test's own connections", || database.number(at_most_two) <= 2);
    serving.end();
    let log = serving.log();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect();
    assert_eq!(lines.iter().filter(|line| line["status"] == 201).count(), 11);
    for secret in [database.api_key.as_str(), SECRET.1] {
        assert!(!log.contains(secret));
    }
}

/// A connection with a charge whose head is read and whose body is not.
fn half_a_charge(program: &Program) -> Raw {
    let mut connection = Raw::connect(program.address);
    let mut request = Bytes::post_as(&program.api_key, FORM, CHARGE).header("Expect: 100-continue");
    request.body.clear();
    assert_eq!(connection.ask(&request.write()).expect("it is told to go on").status, 100);
    connection
}

#[test]
fn the_first_signal_lets_running_requests_finish_and_the_second_ends_the_program_at_once() {
    let database = Arc::new(TestDatabase::new());
    for (first, second) in [(libc::SIGTERM, None), (libc::SIGINT, None), (libc::SIGINT, Some(libc::SIGINT))] {
        let mut program = Program::start(&database, &[]);
        let mut connection = half_a_charge(&program);
        let idle = Raw::connect(program.address);
        program.signal(first);
        eventually("that it stops listening", || TcpStream::connect(program.address).is_err());
        let begun = Instant::now();
        match second {
            None => {
                connection.send(CHARGE.as_bytes());
                let reply = connection.answer().expect("what runs is finished");
                assert_eq!(reply.status, 201);
                assert_eq!(reply.header("connection"), Some("close"));
            }
            Some(signal) => program.signal(signal),
        }
        assert!(program.wait().success());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        drop(idle);
    }
    assert_eq!(database.count("charges"), 2);
    database.assert_clean();
}

#[test]
fn ctrl_c_in_psql_cancels_its_query_and_the_cluster_is_stopped_all_the_same() {
    let directory = directory();
    let (data, began) = (directory.path().join("data-dir"), directory.path().join("began"));
    let (touch, begun) = (format!("\\! touch {}", began.display()), Instant::now());
    let (made, _, said) = run(&mut oncepay(&["--data-dir", data.to_str().unwrap(), "migrate"]));
    assert!(made.status.success(), "{said}");
    let mut child = oncepay(&["--data-dir", data.to_str().unwrap(), "psql"])
        .args(["-c", &touch, "-c", "SELECT pg_sleep(60)"])
        .stderr(Stdio::null())
        // As the terminal does: the signal goes to the program and to psql.
        .process_group(0)
        .spawn()
        .expect("the program starts");
    eventually("psql", || began.exists());
    let group = -i32::try_from(child.id()).unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        // A signal that comes before the query begins cancels nothing, so another one follows.
        // SAFETY: the child is ours and not yet waited for, so its group is no other's.
        unsafe { libc::kill(group, libc::SIGINT) };
        std::thread::sleep(Duration::from_millis(300));
    };
    assert!(status.code().is_some(), "it died of the signal: {status}");
    assert!(begun.elapsed() < Duration::from_secs(50), "psql was told to sleep for 60 seconds");
    assert!(!cluster_runs(directory.path()));
}
