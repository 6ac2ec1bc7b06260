//! The recipes of CONTRIBUTING.md: their code is compiled and served, and the noun that it makes keeps the contract.

use std::sync::Arc;

use futures_util::future::join_all;
use oncepay::app;
use oncepay::http::Route;

use super::Paper;
use crate::support::{TestApp, TestDatabase, fresh_key};

#[path = "../../../../examples/vouchers/mod.rs"]
mod vouchers;

const UP: &str = include_str!("../../../../examples/vouchers/up.sql");
const DOWN: &str = include_str!("../../../../examples/vouchers/down.sql");

/// A server that has the noun of the recipes too.
fn with_vouchers() -> TestApp {
    let database = Arc::new(TestDatabase::new());
    for statement in UP.split_inclusive(";\n") {
        database.execute(statement);
    }
    TestApp::with(|builder| {
        builder.database = Some(database);
        builder.routes = routes;
    })
}

fn routes() -> Vec<Route> {
    let mut routes = app::routes();
    routes.extend(vouchers::handlers::routes());
    routes
}

#[tokio::test]
async fn the_noun_of_the_recipe_is_created_once_and_found_by_its_account_alone() {
    let app = with_vouchers();
    let (key, form) = (fresh_key(), "amount=500&currency=usd");
    let first = app.post("/v1/vouchers").key(&key).form(form).send().await.expect(201);
    let again = app.post("/v1/vouchers").key(&key).form(form).send().await.expect(201);
    assert!(again.is_replay());
    assert_eq!(again.bytes, first.bytes);
    assert_eq!(app.database.count("vouchers"), 1);
    let path = format!("/v1/vouchers/{}", first.id());
    assert_eq!(first.header("Location"), Some(path.as_str()));
    assert_eq!(app.read(&path).await, first.body);
    let other = app.database.other_account();
    app.call_as(&other, reqwest::Method::GET, &path).send().await.expect_error(404, "resource_missing");
    app.submit("/v1/vouchers", "amount=0&currency=usd").await.expect(400);
    assert_eq!(app.database.count("vouchers"), 1);
}

#[tokio::test]
async fn the_route_of_the_recipe_is_won_by_one_of_many_that_race() {
    let app = with_vouchers();
    let voucher = app.submit("/v1/vouchers", "amount=500&currency=usd").await.expect(201).id().to_owned();
    let path = format!("/v1/vouchers/{voucher}/redeem");
    let replies = join_all((0..8).map(|_| app.submit(&path, ""))).await;
    assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
    for reply in replies.into_iter().filter(|reply| reply.status != 200) {
        // Whoever waited too long for the row is told to come again, and the others that they are too late.
        if reply.status != 409 {
            reply.expect_error(400, "voucher_redeemed");
        }
    }
    app.submit(&path, "").await.expect_error(400, "voucher_redeemed");
    assert_eq!(app.database.number("SELECT count(redeemed_at) AS number FROM vouchers"), 1);
}

#[test]
fn the_migration_of_the_recipe_can_be_reverted() {
    let app = with_vouchers();
    app.database.execute(DOWN);
    assert_eq!(app.database.number("SELECT count(*) AS number FROM pg_class WHERE relname = 'vouchers'"), 0);
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
