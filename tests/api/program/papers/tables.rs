//! The tables of the papers (settings, calls, test cards) are those of the program.

use std::collections::BTreeMap;

use chrono::{Datelike, Utc};
use clap::CommandFactory;
use oncepay::app;
use oncepay::card_network::{self, Authorisation, CARDS, Decline, TypedCard};

use super::Paper;

#[test]
fn the_settings_of_the_papers_are_those_of_the_program() {
    let command = oncepay::cli::CommandLine::command();
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
                Authorisation::Approved => "paid",
                Authorisation::Declined(Decline::AuthenticationRequired) => "requires_action",
                Authorisation::Declined(decline) => decline.decline_code(),
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
