//! The README: each of its examples runs as it stands there, in order, against a server.

use std::process::Command;

use chrono::{Datelike, Utc};
use oncepay::card_network::{self, CARDS, Decline, Outcome, TypedCard};
use tokio::process::Command as Process;

use crate::support::{TestApp, sdk};

const README: &str = include_str!("../../../README.md");

/// A block of shell, and the output that its comments promise.
struct Example {
    script: String,
    prints: Vec<String>,
}

fn examples() -> Vec<Example> {
    let example = |block: &str| {
        let prints =
            block.lines().filter_map(|line| line.strip_prefix("# prints ")).map(str::to_owned).collect();
        Example { script: block.to_owned(), prints }
    };
    blocks("sh").map(example).collect()
}

/// The blocks of a language.
fn blocks(language: &str) -> impl Iterator<Item = &'static str> {
    let fence = format!("```{language}\n");
    let starts: Vec<usize> = README.match_indices(&fence).map(|(at, fence)| at + fence.len()).collect();
    starts.into_iter().map(|start| README[start..].split("```").next().unwrap())
}

#[tokio::test]
async fn every_example_prints_what_the_readme_says() {
    let app = TestApp::spawn();
    let examples = examples();
    assert!(examples.len() >= 5, "the README has examples");
    for Example { script, prints } in examples {
        assert!(!prints.is_empty(), "an example without a promise: {script}");
        let here = script
            .replace("127.0.0.1:8080", &app.address.to_string())
            .replace("sk_test_oncepay_demo", &app.database.api_key);
        assert_ne!(here, script, "an example that calls no server: {script}");
        let run = tokio::task::spawn_blocking(move || Command::new("bash").args(["-euc", &here]).output());
        let output = run.await.unwrap().expect("bash runs");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{script}\n{printed}");
        for promise in prints {
            assert!(printed.contains(&promise), "{script}\ndid not print {promise}, but\n{printed}");
        }
    }
    app.database.assert_clean();
}

/// The one snippet of a language, against this server, and a call with the client that it makes.
fn snippet(language: &str, call: &str, app: &TestApp) -> String {
    let snippets: Vec<&str> = blocks(language).collect();
    assert_eq!(snippets.len(), 1, "one snippet for {language}");
    let port = app.address.port().to_string();
    let here = snippets[0].replace("8080", &port).replace("sk_test_oncepay_demo", &app.database.api_key);
    assert!(here.contains(&port) && here.contains(&app.database.api_key), "{here}");
    assert!(snippets[0].lines().count() <= 2, "the README promises two lines: {here}");
    format!("{here}\n{call}\n")
}

/// Checks that a client of the README made one customer.
async fn assert_makes_a_customer(app: &TestApp, mut interpreter: Process, option: &str, script: &str) {
    interpreter.args([option, script]);
    let printed = sdk::finish(interpreter).await;
    assert!(printed.starts_with("cus_"), "{script}\n{printed}");
    assert_eq!(app.database.count("customers"), 1);
    app.database.assert_clean();
}

#[tokio::test]
async fn the_snippet_for_python_makes_a_client_of_this_server() {
    let app = TestApp::spawn();
    let script = snippet("python", "print(client.v1.customers.create().id)", &app);
    assert_makes_a_customer(&app, sdk::python(), "-c", &script).await;
}

#[tokio::test]
async fn the_snippet_for_node_makes_a_client_of_this_server() {
    let Some(node) = sdk::node() else {
        eprintln!("not run: target/sdk-node has no SDK, because there was no Node when `make test` ran");
        return;
    };
    let app = TestApp::spawn();
    let script = snippet("js", "stripe.customers.create().then(made => console.log(made.id));", &app);
    assert_makes_a_customer(&app, node, "-e", &script).await;
}

#[test]
fn each_sdk_is_pointed_at_the_demo_account_in_two_lines() {
    for language in ["python", "js", "ruby", "php", "go", "java", "rust"] {
        let snippets: Vec<&str> = blocks(language).collect();
        assert_eq!(snippets.len(), 1, "{language}");
        assert!(
            snippets[0].lines().count() == 2 && snippets[0].contains("sk_test_oncepay_demo"),
            "{language}"
        );
        assert!(snippets[0].contains("127.0.0.1") && snippets[0].contains("8080"), "{language}");
    }
}

#[test]
fn the_test_cards_of_the_readme_are_those_of_the_program() {
    let table =
        README.split("| name | number | outcome |\n").nth(1).expect("the README has a table of cards");
    let mut documented = Vec::new();
    for row in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names = cells[1].split(", ").map(|name| name.trim_matches('`'));
        let numbers: Vec<&str> = cells[2].split(", ").collect();
        assert_eq!(names.clone().count(), numbers.len(), "{row}");
        for (name, number) in names.zip(numbers) {
            let typed = TypedCard {
                number: number.to_owned(),
                expiry_month: 12,
                expiry_year: i64::from(Utc::now().year()),
                cvc: None,
            };
            let card = card_network::accept(&typed, Utc::now()).expect(row);
            assert_eq!(card.name, name, "{row}");
            let outcome = match card_network::authorise(card) {
                Outcome::Approved => "paid",
                Outcome::Declined(Decline::AuthenticationRequired) => "requires_action",
                Outcome::Declined(decline) => decline.decline_code(),
            };
            assert!(cells[3].contains(outcome), "{row}");
            documented.push(name);
        }
    }
    let mut all: Vec<&str> = CARDS.iter().map(|card| card.name).collect();
    documented.sort_unstable();
    all.sort_unstable();
    assert_eq!(documented, all);
}

/// The numbered steps of a text, without its links.
fn walk(text: &str) -> String {
    let from = text.find("1. [`src/app.rs`]").expect("the walk begins with the table of routes");
    let walk: Vec<&str> = text[from..].lines().take_while(|line| !line.trim().is_empty()).collect();
    let mut parts = walk.join(" ").split("](").map(str::to_owned).collect::<Vec<_>>();
    for part in &mut parts[1..] {
        part.replace_range(..=part.find(')').expect("a link ends"), "");
    }
    parts.concat().replace('[', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_walk_of_the_readme_is_that_of_the_crates_documentation() {
    let documentation: String = include_str!("../../../src/lib.rs")
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(walk(&documentation), walk(README));
    assert!(walk(README).contains("6. "));
}

#[test]
fn every_file_that_the_readme_names_is_there() {
    let links = README.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    for link in links.filter(|link| !link.starts_with("http")) {
        assert!(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(link).exists(), "{link}");
    }
}

#[test]
fn the_settings_of_the_readme_are_those_of_the_program() {
    use clap::CommandFactory;
    let command = oncepay::config::CommandLine::command();
    let arguments = command.get_arguments().filter(|argument| argument.get_env().is_some());
    let mut expected: Vec<String> = arguments
        .map(|argument| {
            let variable = argument.get_env().unwrap().to_str().unwrap();
            format!("| `--{}` | `{variable}` |", argument.get_long().unwrap())
        })
        .collect();
    let cells = |line: &str| line.splitn(4, '|').take(3).collect::<Vec<_>>().join("|") + "|";
    let mut documented: Vec<String> =
        README.lines().filter(|line| line.starts_with("| `--")).map(cells).collect();
    expected.sort();
    documented.sort();
    assert_eq!(documented, expected);
}
