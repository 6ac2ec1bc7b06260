//! What the README promises: each of its examples is run as it stands there, in order, against a server.

use std::process::Command;

use crate::support::TestApp;

const README: &str = include_str!("../../README.md");

/// A block of shell and what its comments say that it prints.
struct Example {
    script: String,
    prints: Vec<String>,
}

fn examples() -> Vec<Example> {
    let blocks = README.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let example = |block: &str| {
        let prints =
            block.lines().filter_map(|line| line.strip_prefix("# prints ")).map(str::to_owned).collect();
        Example { script: block.to_owned(), prints }
    };
    blocks.map(example).collect()
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
    let mut told: Vec<String> = README.lines().filter(|line| line.starts_with("| `--")).map(cells).collect();
    expected.sort();
    told.sort();
    assert_eq!(told, expected);
}
