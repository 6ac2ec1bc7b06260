//! The papers (README, CONTRIBUTING and what is in `docs/`) promise nothing that the program does not do.

mod examples;
mod links;
mod recipes;
mod snippets;
mod tables;
mod walk;

use std::path::{Path, PathBuf};

/// The most lines that a README should have.
const README_LINES: usize = 200;

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

#[test]
fn the_readme_is_short() {
    let lines = Paper::read("README.md").text.lines().count();
    assert!(lines <= README_LINES, "{lines} lines");
}
