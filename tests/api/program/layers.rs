//! No import points up: each room of the crate uses rooms that stand below it, and no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms, from the ground up. The handlers of all nouns of payments stand together above the nouns.
const FLOORS: &[&str] = &[
    "schema",
    "types",
    "secrets",
    "error",
    "db",
    "wire",
    "auth",
    "idempotency",
    "http",
    "answers",
    "card_network",
    "webhooks",
    "events",
    "notifications",
    "payments/balance",
    "payments/payment_methods",
    "payments/tokens",
    "payments/customers",
    "payments/charges",
    "payments/payment_intents",
    "payments/disputes",
    "payments/refunds",
    "payments/handlers",
    "payments",
    "app",
    "embedded",
    "audit",
    "cli",
];

/// Where actix may be known, beside the files that are called `handlers.rs`.
const KNOW_ACTIX: [&str; 2] = ["http", "app"];

fn floor(room: &str) -> usize {
    FLOORS.iter().position(|known| *known == room).unwrap_or_else(|| panic!("{room} stands on no floor"))
}

/// All Rust files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The room of a path such as `payments/charges/mod.rs` or `payments::charges::Charge`.
fn room(parts: &[&str]) -> String {
    match parts {
        ["payments", _, "handlers" | "handlers.rs", ..] => "payments/handlers".to_owned(),
        ["payments", noun, ..] if FLOORS.contains(&&*format!("payments/{noun}")) => {
            format!("payments/{noun}")
        }
        [room, ..] => room.trim_end_matches(".rs").to_owned(),
        [] => unreachable!("a path has a first part"),
    }
}

/// What a file imports from its crate, tests left out: `use crate::a::{b, c::d}` is `a::b` and `a::c::d`.
fn imports(code: &str) -> BTreeSet<String> {
    let code: String = code.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let end = rest.find([';', '(', ')', ' ', ',', '<', '>', '[', '!']).unwrap_or(rest.len());
        match rest.find('{') {
            Some(brace) if brace <= end => {
                let close = rest.find("};").unwrap();
                let prefix = &rest[..brace];
                let (mut depth, mut item) = (0, String::new());
                for character in rest[brace + 1..close].chars().chain([',']) {
                    match character {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 0 => {
                            found.insert(format!("{prefix}{}", item.trim()));
                            item.clear();
                            continue;
                        }
                        _ => {}
                    }
                    item.push(character);
                }
            }
            _ => {
                found.insert(rest[..end].to_owned());
            }
        }
    }
    found.retain(|path| !path.is_empty() && !path.ends_with("::"));
    found
}

#[test]
fn no_import_points_up() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = BTreeSet::new();
    for file in files(&source) {
        let path = file.strip_prefix(&source).unwrap().to_str().unwrap();
        if matches!(path, "lib.rs" | "main.rs") {
            continue;
        }
        let code = fs::read_to_string(&file).unwrap();
        let own = room(&path.split('/').collect::<Vec<_>>());
        for import in imports(&code) {
            let other = room(&import.split("::").collect::<Vec<_>>());
            assert!(
                floor(&other) <= floor(&own),
                "{path} of {own} imports {import} of {other}, which stands above"
            );
            seen.insert((own.clone(), other));
        }
        let may = KNOW_ACTIX.contains(&&*own) || path.ends_with("handlers.rs");
        assert!(may || !code.contains("actix_web::"), "{path} knows actix");
    }
    // The reader of imports reads them.
    let known = |own: &str, other: &str| seen.contains(&(own.to_owned(), other.to_owned()));
    assert!(
        known("payments/refunds", "payments/charges")
            && known("http", "idempotency")
            && known("error", "types")
    );
}

#[test]
fn the_protocol_knows_neither_credentials_nor_nouns() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/idempotency");
    for file in files(&source) {
        for import in imports(&fs::read_to_string(&file).unwrap()) {
            let other = room(&import.split("::").collect::<Vec<_>>());
            let may = ["idempotency", "db", "error", "types", "secrets", "schema"];
            assert!(may.contains(&&*other), "{} imports {import}", file.display());
        }
    }
}
