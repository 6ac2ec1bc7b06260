//! The walk along one request is the same in the README and in the crate's documentation.

use super::Paper;

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
