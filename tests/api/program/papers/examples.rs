//! Each example in a paper runs as it stands there, in order, against a server, and prints what its comments say.

use std::process::Command;

use super::{Block, Paper, papers};
use crate::support::TestApp;

/// What can stand behind the fence of a block. An `sh` is run; a `text` is for what no test can run.
const LANGUAGES: [&str; 11] =
    ["text", "rust", "sql", "json", "python", "js", "ruby", "php", "go", "java", "sh"];

/// A block of shell and what its comments say that it prints.
struct Example {
    script: String,
    prints: Vec<String>,
}

fn examples(paper: &Paper) -> Vec<Example> {
    let example = |block: Block| {
        let prints = block.text.lines().filter_map(|line| line.strip_prefix("# prints ")).map(str::to_owned);
        Example { prints: prints.collect(), script: block.text.clone() }
    };
    paper.blocks().into_iter().filter(|block| block.language == "sh").map(example).collect()
}

#[tokio::test]
async fn every_example_prints_what_its_paper_says() {
    let mut run = 0;
    for paper in papers().into_iter().filter(|paper| !examples(paper).is_empty()) {
        let app = TestApp::spawn();
        for Example { script, prints } in examples(&paper) {
            run += 1;
            assert!(!prints.is_empty(), "an example without a promise: {script}");
            let here = script
                .replace("127.0.0.1:8080", &app.address.to_string())
                .replace("sk_test_oncepay_demo", &app.database.api_key);
            assert_ne!(here, script, "an example that calls no server: {script}");
            let output =
                tokio::task::spawn_blocking(move || Command::new("bash").args(["-euc", &here]).output());
            let output = output.await.unwrap().expect("bash runs");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{script}\n{printed}");
            for promise in prints {
                assert!(printed.contains(&promise), "{script}\ndid not print {promise}, but\n{printed}");
            }
        }
        app.database.assert_clean();
    }
    assert!(run >= 12, "{run}");
}

#[test]
fn no_example_hides_from_the_test() {
    for paper in papers() {
        for block in paper.blocks() {
            assert!(LANGUAGES.contains(&block.language.as_str()), "{:?}: {}", paper.path, block.text);
            let calls = block.text.lines().any(|line| line.starts_with("curl "));
            assert!(block.language == "sh" || !calls, "{:?}: {}", paper.path, block.text);
            if block.language == "json" {
                serde_json::from_str::<serde_json::Value>(&block.text).expect(&block.text);
            }
        }
    }
}
