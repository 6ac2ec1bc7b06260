//! What the papers promise, README and docs alike: each example is run as it stands there, in order, against a server;
//! each table is compared with the program, each link followed, and each line of a recipe found in what is compiled.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{Datelike, Utc};
use oncepay::app;
use oncepay::card_network::{self, CARDS, Decline, Outcome, TypedCard};
use tokio::process::Command as Process;

use crate::support::{TestApp, sdk};

/// The most lines that a README should have.
const README_LINES: usize = 200;

/// What can stand behind the fence of a block, besides `sh`. A `text` is for what no test can run.
const LANGUAGES: [&str; 11] =
    ["text", "rust", "sql", "json", "python", "js", "ruby", "php", "go", "java", "sh"];

/// A markdown file of this repository.
struct Paper {
    path: PathBuf,
    text: String,
}

/// A fenced block of a paper.
struct Block {
    language: String,
    /// The last line before it that is not empty.
    introduction: String,
    text: String,
}

/// A block of shell and what its comments say that it prints.
struct Example {
    script: String,
    prints: Vec<String>,
}

impl Paper {
    fn read(name: &str) -> Self {
        let path = root().join(name);
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path, text }
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut introduction = String::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            if let Some(language) = line.strip_prefix("```") {
                let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
                let text = body.iter().map(|line| format!("{line}\n")).collect();
                blocks.push(Block {
                    language: language.to_owned(),
                    introduction: introduction.clone(),
                    text,
                });
            } else if !line.is_empty() {
                line.clone_into(&mut introduction);
            }
        }
        blocks
    }

    fn examples(&self) -> Vec<Example> {
        let example = |block: Block| {
            let prints =
                block.text.lines().filter_map(|line| line.strip_prefix("# prints ")).map(str::to_owned);
            Example { prints: prints.collect(), script: block.text.clone() }
        };
        self.blocks().into_iter().filter(|block| block.language == "sh").map(example).collect()
    }

    /// The text without its blocks.
    fn prose(&self) -> String {
        self.text.split("```").step_by(2).collect()
    }

    /// The rows of the table with this head, as their cells.
    fn table(&self, head: &str) -> Vec<Vec<String>> {
        let head = format!("{head}\n");
        let table = self.text.split(&head).nth(1).unwrap_or_else(|| panic!("no table {head}"));
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
            .collect()
    }

    /// Where links can lead within it: its headings, as GitHub names them.
    fn anchors(&self) -> Vec<String> {
        let name = |heading: &str| {
            let kept = heading.to_lowercase().replace(' ', "-");
            kept.chars()
                .filter(|kept| kept.is_alphanumeric() || matches!(kept, '-' | '_'))
                .collect::<String>()
        };
        let prose = self.prose();
        let headings = prose.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| name(line.trim_start_matches('#').trim())).collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All of them.
fn papers() -> Vec<Paper> {
    let mut papers = Vec::new();
    for folder in [".", "docs", "examples"] {
        let mut names: Vec<String> = std::fs::read_dir(root().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".md"))
            .collect();
        names.sort();
        papers.extend(names.iter().map(|name| Paper::read(&format!("{folder}/{name}"))));
    }
    papers
}

#[tokio::test]
async fn every_example_prints_what_its_paper_says() {
    let mut examples = 0;
    for paper in papers().into_iter().filter(|paper| !paper.examples().is_empty()) {
        let app = TestApp::spawn();
        for Example { script, prints } in paper.examples() {
            examples += 1;
            assert!(!prints.is_empty(), "an example without a promise: {script}");
            let here = script
                .replace("127.0.0.1:8080", &app.address.to_string())
                .replace("sk_test_oncepay_demo", &app.database.api_key);
            assert_ne!(here, script, "an example that calls no server: {script}");
            let run =
                tokio::task::spawn_blocking(move || Command::new("bash").args(["-euc", &here]).output());
            let output = run.await.unwrap().expect("bash runs");
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{script}\n{printed}");
            for promise in prints {
                assert!(printed.contains(&promise), "{script}\ndid not print {promise}, but\n{printed}");
            }
        }
        app.database.assert_clean();
    }
    assert!(examples >= 12, "{examples}");
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

#[test]
fn the_readme_is_short() {
    let lines = Paper::read("README.md").text.lines().count();
    assert!(lines <= README_LINES, "{lines} lines");
}

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

#[test]
fn the_test_cards_of_the_papers_are_those_of_the_program() {
    let table = Paper::read("docs/wire.md").table("| name | number | outcome |");
    let mut told = Vec::new();
    for cells in &table {
        let row = cells.join(" | ");
        let row = row.as_str();
        let names = cells[0].split(", ").map(|name| name.trim_matches('`'));
        let numbers: Vec<&str> = cells[1].split(", ").collect();
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
            assert!(cells[2].contains(outcome), "{row}");
            told.push(name);
        }
    }
    let mut all: Vec<&str> = CARDS.iter().map(|card| card.name).collect();
    told.sort_unstable();
    all.sort_unstable();
    assert_eq!(told, all);
}

#[test]
fn the_calls_of_the_papers_are_those_of_the_program() {
    let mut expected: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for route in app::routes() {
        let path = route.path.replace(":.+}", "}");
        expected.entry(path).or_default().push(route.method.to_string());
    }
    expected.values_mut().for_each(|methods| methods.sort_unstable());
    let told: BTreeMap<String, Vec<String>> = Paper::read("docs/wire.md")
        .table("| path | methods | what they do |")
        .into_iter()
        .map(|cells| {
            let mut methods: Vec<String> =
                cells[1].split(' ').map(|method| method.trim_matches('`').to_owned()).collect();
            methods.sort_unstable();
            (cells[0].trim_matches('`').to_owned(), methods)
        })
        .collect();
    assert_eq!(told, expected);
}

/// The numbered steps of a text, without its links.
fn walk(text: &str) -> String {
    let from = text.find("1. [`src/app").expect("the walk begins with the table of routes");
    let walk: Vec<&str> = text[from..].lines().take_while(|line| !line.trim().is_empty()).collect();
    let mut parts = walk.join(" ").split("](").map(str::to_owned).collect::<Vec<_>>();
    for part in &mut parts[1..] {
        part.replace_range(..=part.find(')').expect("a link ends"), "");
    }
    parts.concat().replace('[', "").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_walk_of_the_readme_is_that_of_the_crates_documentation() {
    let documentation: String = Paper::read("src/lib.rs")
        .text
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| format!("{line}\n"))
        .collect();
    let readme = walk(&Paper::read("README.md").text);
    assert_eq!(walk(&documentation), readme);
    assert!(readme.contains("6. "));
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for paper in papers() {
        let prose = paper.prose();
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("https://") {
                continue;
            }
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { paper.path.clone() } else { paper.path.parent().unwrap().join(file) };
            assert!(target.exists(), "{:?} names {link}", paper.path);
            if !anchor.is_empty() {
                let target = target.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                let anchors = Paper::read(&target).anchors();
                assert!(anchors.iter().any(|known| known == anchor), "{:?} names {link}", paper.path);
            }
        }
    }
    assert!(links > 50, "{links}");
}

#[test]
fn every_paper_is_named_by_another() {
    let papers = papers();
    let prose: String = papers.iter().map(Paper::prose).collect();
    for paper in papers {
        let name = paper.path.file_name().unwrap().to_str().unwrap();
        assert!(prose.contains(&format!("{name})")) || prose.contains(&format!("{name}#")), "{name}");
    }
}

#[test]
fn the_code_of_the_recipes_is_what_is_compiled() {
    let paper = Paper::read("CONTRIBUTING.md");
    let mut compared = 0;
    for block in paper.blocks().iter().filter(|block| matches!(block.language.as_str(), "rust" | "sql")) {
        let named = block.introduction.split('`').nth(1).unwrap_or_default();
        assert_eq!(
            block.introduction,
            format!("[`{named}`]({named}):"),
            "which file is this?\n{}",
            block.text
        );
        let compiled = Paper::read(named).text;
        assert!(compiled.contains(&block.text), "{named} does not have this any more:\n{}", block.text);
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn the_settings_of_the_papers_are_those_of_the_program() {
    use clap::CommandFactory;
    let command = oncepay::config::CommandLine::command();
    let arguments = command.get_arguments().filter(|argument| argument.get_env().is_some());
    let mut expected: Vec<String> = arguments
        .map(|argument| {
            let variable = argument.get_env().unwrap().to_str().unwrap();
            format!("| `--{}` | `{variable}` |", argument.get_long().unwrap())
        })
        .collect();
    let table = Paper::read("docs/settings.md").table("| flag | variable | default |");
    let mut told: Vec<String> =
        table.iter().map(|cells| format!("| {} | {} |", cells[0], cells[1])).collect();
    expected.sort();
    told.sort();
    assert_eq!(told, expected);
}
