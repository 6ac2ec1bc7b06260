//! What a new user and an operator do first: whom the server answers, which key it has, what stands in its data, and what
//! it says where there are none.

use std::fs;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use oncepay::http::Hosts;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{CHARGE, Program, Raw, TestApp, TestDatabase, fresh_key, oncepay, oncepay_on};

fn directory() -> TempDir {
    let directory = TempDir::new_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

fn in_directory(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = oncepay(arguments);
    command.env("DATA_DIR", directory.join("data-dir"));
    command
}

fn output(command: &mut Command) -> (Output, String, String) {
    let output = command.output().expect("the program runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    (output, out, err)
}

/// The status of a request with these headers, as they stand.
fn status(app: &TestApp, request_line: &str, headers: &str) -> u16 {
    let mut raw = Raw::connect(app.address);
    let ask = format!("{request_line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    raw.ask(ask.as_bytes()).expect("an answer").status
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_well_known_key_works_only_local_names_are_answered() {
    let app = TestApp::with(|builder| builder.hosts = Hosts::local_and(vec!["payments.test".to_owned()]));
    let port = app.address.port();
    for path in ["/healthz", "/readyz", "/metrics"] {
        for host in [
            "localhost".to_owned(),
            format!("127.0.0.1:{port}"),
            "[::1]:1".to_owned(),
            "shop.localhost".to_owned(),
            "PAYMENTS.test.:80".to_owned(),
        ] {
            assert_eq!(status(&app, &format!("GET {path}"), &format!("Host: {host}\r\n")), 200, "{host}");
        }
    }
    for path in ["/healthz", "/metrics", "/v1/charges", "/v1/nothing", "/nothing"] {
        for headers in [
            "Host: evil.test\r\n",
            "Host: evil.test:8080\r\n",
            "Host: localhost.evil.test\r\n",
            "Host: 0.0.0.0\r\n",
            "Host: \r\n",
            "Host: localhost\r\nOrigin: http://evil.test\r\n",
            "Host: localhost\r\nOrigin: null\r\n",
            "Host: localhost\r\nOrigin: https://localhost.evil.test:1\r\n",
        ] {
            assert_eq!(status(&app, &format!("GET {path}"), headers), 403, "{path} {headers}");
        }
    }
    let own_page = format!("Host: localhost\r\nOrigin: http://localhost:{port}\r\n");
    assert_eq!(status(&app, "GET /healthz", &own_page), 200);
    assert_eq!(status(&app, "GET http://evil.test/healthz", "Host: localhost\r\n"), 403);
    // Nothing runs, and the caller is told what to do.
    let before = app.database.dump();
    let call = app.post("/v1/charges").key(&fresh_key()).header("Host", "evil.test").form(CHARGE);
    let refused = call.send().await.expect(403);
    assert_eq!(refused.body["error"]["type"], "invalid_request_error");
    assert!(refused.body["error"]["message"].as_str().unwrap().contains("--allow-host"), "{}", refused.body);
    assert_eq!(app.database.dump(), before);
    // Without the well-known key any name may lead here.
    let open = TestApp::spawn();
    assert_eq!(status(&open, "GET /healthz", "Host: evil.test\r\n"), 200);
}

#[test]
fn where_there_are_no_data_nothing_is_made_and_the_exit_code_says_so() {
    let directory = directory();
    for arguments in [&["audit"][..], &["psql"], &["api-key", "list"], &["api-key", "create"]] {
        let (ended, out, err) = output(&mut in_directory(directory.path(), arguments));
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {out} {err}");
        let place = directory.path().join("data-dir");
        assert!(
            err.contains("there are no data here (looked in ") && err.contains(place.to_str().unwrap()),
            "{err}"
        );
        assert!(!place.exists(), "{arguments:?}");
    }
    // A directory that holds something else is as empty.
    fs::create_dir(directory.path().join("data-dir")).unwrap();
    let (ended, _, err) = output(&mut in_directory(directory.path(), &["audit"]));
    assert_eq!(ended.status.code(), Some(2), "{err}");
    assert_eq!(fs::read_dir(directory.path().join("data-dir")).unwrap().count(), 0);
    // So is a database without tables of oncepay.
    let database = TestDatabase::new();
    database.execute("DROP SCHEMA public, readable CASCADE");
    database.execute("CREATE SCHEMA public");
    let (ended, _, err) = output(oncepay(&["audit"]).env("DATABASE_URL", &database.url));
    assert_eq!(ended.status.code(), Some(2), "{err}");
    assert!(err.contains("there are no data here"), "{err}");
}

#[tokio::test]
async fn the_audit_says_how_many_rows_each_rule_saw() {
    let database = Arc::new(TestDatabase::new());
    let program = Program::start(&database, &[]);
    program.post("/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
    let (_, said, _) = output(oncepay(&["audit"]).env("DATABASE_URL", &database.url));
    assert!(said.contains("refunded <= captured <= amount (1 rows)"), "{said}");
    assert!(said.lines().all(|line| line.starts_with("holds ") && line.ends_with(" rows)")), "{said}");
}

#[test]
fn with_a_json_log_the_greeting_is_a_line_of_json() {
    let directory = directory();
    let arguments = ["--log-format", "json", "--listen", "127.0.0.1:0"];
    let mut command = in_directory(directory.path(), &arguments);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    let greeting: Value = serde_json::from_str(&line).expect(&line);
    assert_eq!(greeting["demo_key"], "sk_test_oncepay_demo");
    assert!(TcpStream::connect(greeting["address"].as_str().unwrap()).is_ok());
    // SAFETY: kill only sends a signal, to this test's own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn the_demo_account_has_the_key_that_the_settings_name() {
    const KEY: &str = "sk_test_chosen_by_the_user";
    let directory = directory();
    let start = |listen: &str| {
        let mut command = in_directory(directory.path(), &["--listen", listen]);
        command.env("DEMO_API_KEY", KEY);
        Program::start_as(command)
    };
    for listen in ["0.0.0.0:0", "127.0.0.1:0"] {
        let mut program = start(listen);
        assert!(!program.greeting.contains(KEY), "standard output is no terminal: {}", program.greeting);
        let charge = |key| program.call_as(key, Method::POST, "/v1/charges").key(&fresh_key()).form(CHARGE);
        charge(KEY).send().await.expect(201);
        charge("sk_test_oncepay_demo").send().await.expect(401);
        program.end();
    }
    for (listen, key, message) in [
        ("0.0.0.0:0", "sk_test_oncepay_demo", "is known to everybody"),
        ("127.0.0.1:0", "chosen", "begins with sk_test_"),
        ("127.0.0.1:0", "sk_test_short", "20 to 255"),
    ] {
        let mut command = in_directory(directory.path(), &["--listen", listen, "--demo-key", key]);
        let (ended, _, err) = output(&mut command);
        assert!(!ended.status.success() && err.contains(message), "{err}");
    }
}

#[tokio::test]
async fn a_seed_file_makes_accounts_keys_and_endpoints_once_and_its_errors_name_the_member() {
    let directory = directory();
    let file = directory.path().join("seed.json");
    let seed = json!({ "accounts": [{
        "name": "shop",
        "keys": ["sk_test_shop_0123456789abcdef"],
        "webhook_endpoints": [{
            "url": "http://127.0.0.1:4242/hook",
            "enabled_events": ["*"],
            "secret": "whsec_shop_0123456789abcdef",
        }],
    }] });
    fs::write(&file, seed.to_string()).unwrap();
    let database = Arc::new(TestDatabase::new());
    let variables = [("SEED_FILE", file.to_str().unwrap()), ("WEBHOOK_ALLOW_PRIVATE", "true")];
    for _ in 0..2 {
        let mut program = Program::start(&database, &variables);
        let call = |method, path| program.call_as("sk_test_shop_0123456789abcdef", method, path);
        call(Method::POST, "/v1/charges").key(&fresh_key()).form(CHARGE).send().await.expect(201);
        let endpoints = call(Method::GET, "/v1/webhook_endpoints").send().await.expect(200);
        assert_eq!(endpoints.body["data"].as_array().unwrap().len(), 1);
        program.end();
    }
    for (wrong, member) in [
        (json!({}), "accounts"),
        (json!({ "accounts": [{ "name": "a", "key": "x" }] }), "accounts[0]"),
        (json!({ "accounts": [{ "name": "" }] }), "accounts[0].name"),
        (json!({ "accounts": [{ "name": "a", "keys": ["x"] }] }), "accounts[0].keys[0]"),
        (
            json!({ "accounts": [{ "name": "a" }, { "name": "b", "keys": ["sk_test_shop_0123456789abcdef"] }] }),
            "accounts[1].keys[0]",
        ),
        (
            json!({ "accounts": [{ "name": "a", "webhook_endpoints": [
                { "url": "ftp://x", "enabled_events": ["*"], "secret": "whsec_0123456789abcdef" }] }] }),
            "accounts[0].webhook_endpoints[0]",
        ),
        (
            json!({ "accounts": [{ "name": "a", "webhook_endpoints": [
                { "url": "http://x", "enabled_events": ["*"], "secret": "short" }] }] }),
            "accounts[0].webhook_endpoints[0]",
        ),
    ] {
        fs::write(&file, wrong.to_string()).unwrap();
        let before = database.dump();
        let (ended, _, err) = output(&mut oncepay_on(&database, &["--listen", "127.0.0.1:0"], &variables));
        assert_eq!(ended.status.code(), Some(1), "{wrong}: {err}");
        assert!(err.contains(member) && err.contains("seed.json"), "{wrong}: {err}");
        assert_eq!(database.dump(), before, "{wrong}");
    }
}

#[test]
fn a_name_can_be_listened_on() {
    let directory = directory();
    let mut program = Program::start_as(in_directory(directory.path(), &["--listen", "localhost:0"]));
    assert!(program.address.ip().is_loopback());
    assert_eq!(program.api_key, "sk_test_oncepay_demo");
    program.end();
}

#[tokio::test]
async fn views_show_ids_and_json_as_the_api_does_with_the_request_that_made_each_row() {
    let app = TestApp::spawn();
    let key = fresh_key();
    let charge = app.post("/v1/charges").key(&key).form(CHARGE).send().await.expect(201);
    let refund = app.submit("/v1/refunds", &format!("charge={}", charge.id())).await.expect(201);
    let text = |sql: &str| app.database.text(&format!("SELECT ({sql})::text AS text"));
    assert_eq!(text("SELECT id FROM readable.charges"), charge.id());
    assert_eq!(text("SELECT key FROM readable.charges"), key);
    assert_eq!(text("SELECT answered FROM readable.charges"), "201");
    assert_eq!(text("SELECT charge FROM readable.refunds"), charge.id());
    let answer = text(&format!("SELECT answer FROM readable.requests WHERE key = '{key}'"));
    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), charge.body);
    let source = "SELECT source FROM readable.balance_transactions WHERE kind = 'refund'";
    assert_eq!(text(source), refund.id());
    let event = text("SELECT object FROM readable.events WHERE type = 'charge.succeeded'");
    assert_eq!(event, charge.id());
    // Every view can be read, and says what it is.
    let views = "SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_class \
                 WHERE relnamespace = 'readable'::regnamespace AND relkind = 'v'";
    let views = text(views);
    assert!(views.split(' ').count() >= 10, "{views}");
    for view in views.split(' ') {
        text(&format!("SELECT count(*) FROM readable.{view}"));
        assert_ne!(text(&format!("SELECT obj_description('readable.{view}'::regclass)")), "", "{view}");
    }
}

#[test]
fn the_private_postgres_keeps_no_file_of_whoever_started_the_program() {
    let directory = directory();
    let lock = fs::File::create(directory.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let mut command = in_directory(directory.path(), &["--listen", "127.0.0.1:0"]);
    let file = lock.as_raw_fd();
    // The program inherits the descriptor, as it does from a script that holds a lock while it runs. No program of
    // another test does.
    // SAFETY: between fork and exec the call changes a flag of this test's own file.
    unsafe {
        command.pre_exec(move || match libc::fcntl(file, libc::F_SETFD, 0) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    let mut program = Program::start_as(command);
    drop(lock);
    program.kill();
    let again = fs::File::open(directory.path().join("lock")).unwrap();
    assert!(again.try_lock().is_ok(), "the server that is left has no hold on it");
    Program::start_as(in_directory(directory.path(), &["--listen", "127.0.0.1:0"])).end();
}
