//! The snippets for SDKs: two lines each, which make a client of this server.

use tokio::process::Command;

use super::Paper;
use crate::support::{TestApp, sdk};

/// The one snippet of a language that makes a client.
fn snippet(language: &str) -> String {
    let papers = ["README.md", "docs/sdks.md"].map(Paper::read);
    let mut snippets = papers.iter().flat_map(Paper::blocks).filter(|block| block.language == language);
    let snippet = snippets.next().unwrap_or_else(|| panic!("no snippet for {language}"));
    assert!(snippets.next().is_none(), "one snippet for {language}");
    snippet.text
}

/// The one snippet of a language, against this server, and a call with the client that it makes.
fn snippet_here(language: &str, call: &str, app: &TestApp) -> String {
    let port = app.address.port().to_string();
    let here =
        snippet(language).replace("8080", &port).replace("sk_test_oncepay_demo", &app.database.api_key);
    assert!(here.contains(&port) && here.contains(&app.database.api_key), "{here}");
    format!("{here}\n{call}\n")
}

/// Checks that a client of the papers makes one customer.
async fn assert_makes_a_customer(app: &TestApp, mut interpreter: Command, option: &str, script: &str) {
    interpreter.args([option, script]);
    let printed = sdk::finish(interpreter).await;
    assert!(printed.starts_with("cus_"), "{script}\n{printed}");
    assert_eq!(app.database.count("customers"), 1);
    app.database.assert_clean();
}

#[tokio::test]
async fn the_snippet_for_python_makes_a_client_of_this_server() {
    let app = TestApp::spawn();
    let script = snippet_here("python", "print(client.v1.customers.create().id)", &app);
    assert_makes_a_customer(&app, sdk::python(), "-c", &script).await;
}

#[tokio::test]
async fn the_snippet_for_node_makes_a_client_of_this_server() {
    let Some(node) = sdk::node() else {
        eprintln!("not run: target/sdk-node has no SDK, because there was no Node when `make test` ran");
        return;
    };
    let app = TestApp::spawn();
    let script = snippet_here("js", "stripe.customers.create().then(made => console.log(made.id));", &app);
    assert_makes_a_customer(&app, node, "-e", &script).await;
}

#[test]
fn each_sdk_is_pointed_at_the_demo_account_in_two_lines() {
    for language in ["python", "js", "ruby", "php", "go", "java", "rust"] {
        let snippet = snippet(language);
        assert!(snippet.lines().count() == 2 && snippet.contains("sk_test_oncepay_demo"), "{snippet}");
        assert!(snippet.contains("127.0.0.1") && snippet.contains("8080"), "{snippet}");
    }
}
