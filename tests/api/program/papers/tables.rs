//! The tables of the papers (settings, calls, test cards) are those of the program.

use std::collections::BTreeMap;

use chrono::{Datelike, Utc};
use clap::CommandFactory;
use oncepay::app;
use oncepay::card_network::{self, Authorisation, CARDS, Decline, TypedCard};

use super::Paper;
use crate::support::intents::PRICE;
use crate::support::{CHARGE, TestApp};

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

/// What a cell of a table writes as code, in order.
fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

#[tokio::test]
async fn the_parameters_that_the_papers_call_taken_without_effect_are_taken() {
    let app = TestApp::spawn();
    let charge = app.charge().await;
    let method = app.method("visa").await;
    let card = "type=card&card[number]=4242424242424242&card[exp_month]=1&card[exp_year]=2040";
    let data = "payment_method_data[card][token]=tok_visa";
    let mut taken = 0;
    for cells in Paper::read("docs/wire.md").table("| of | parameters |") {
        let (of, parameters) = (cells[0].as_str(), cells[1].as_str());
        for name in code(parameters) {
            if name == "card" && parameters.contains("(without `card`)") {
                continue;
            }
            taken += 1;
            // As it stands in the form: `card[networks]` within `payment_method_data` is its `[card][networks]`.
            let within = |outer: &str| {
                let (first, rest) =
                    name.split_once('[').map_or((name, ""), |(first, _)| (first, &name[first.len()..]));
                format!("{outer}[{first}]{rest}=x")
            };
            let posts = match of {
                "payment intents" => {
                    let value = if name == "excluded_payment_method_types" { "[]=klarna" } else { "[x]=y" };
                    let open = app.intent("payment_method=pm_card_visa").await;
                    let open = format!("/v1/payment_intents/{}", open["id"].as_str().unwrap());
                    vec![
                        ("/v1/payment_intents".to_owned(), format!("{PRICE}&{name}{value}")),
                        (open.clone(), format!("{name}{value}")),
                        (format!("{open}/confirm"), format!("return_url=https://example.com&{name}{value}")),
                    ]
                }
                "their `payment_method_options[card]`" => {
                    let option = within("payment_method_options[card]");
                    vec![("/v1/payment_intents".to_owned(), format!("{PRICE}&{option}"))]
                }
                "their `payment_method_options`" => {
                    let option = within("payment_method_options");
                    vec![("/v1/payment_intents".to_owned(), format!("{PRICE}&{option}"))]
                }
                "charges" => vec![
                    ("/v1/charges".to_owned(), format!("{CHARGE}&{name}[x]=y")),
                    (format!("/v1/charges/{charge}"), format!("{name}[x]=y")),
                ],
                "payment methods and `payment_method_data`" => vec![
                    ("/v1/payment_methods".to_owned(), format!("{card}&{name}=x")),
                    (
                        "/v1/payment_intents".to_owned(),
                        format!("{PRICE}&{data}&{}", within("payment_method_data")),
                    ),
                ],
                "refunds" => {
                    vec![("/v1/refunds".to_owned(), format!("charge={charge}&amount=1&{name}=a@b.c"))]
                }
                other => panic!("nobody sends the parameters of {other}"),
            };
            for (path, form) in posts {
                let reply = app.submit(&path, &form).await;
                assert!(matches!(reply.status, 200 | 201), "{path} {form}: {}", reply.body);
            }
        }
    }
    assert!(taken > 20, "{taken}");
    let update = "allow_redisplay=always&card[networks][preferred]=visa";
    app.submit(&format!("/v1/payment_methods/{method}"), update).await.expect(200);
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
                Authorisation::Declined(decline) => decline.as_str(),
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
