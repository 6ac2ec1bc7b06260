//! The account of an API key, which integrations read when they start.

use reqwest::Method;
use serde_json::json;

use crate::support::TestApp;
use crate::support::shapes::{ACCOUNT, assert_shape};

#[tokio::test]
async fn the_account_of_the_key_may_do_everything_that_this_service_does() {
    let app = TestApp::spawn();
    let account = app.read("/v1/account").await;
    assert_shape(&account, ACCOUNT);
    assert_eq!(account["object"], "account");
    assert_eq!(account["id"], app.account());
    for name in ["charges_enabled", "payouts_enabled", "details_submitted"] {
        assert_eq!(account[name], true, "{name}");
    }
    assert_eq!((&account["country"], &account["default_currency"]), (&json!("US"), &json!("usd")));
    assert_eq!(account["capabilities"]["card_payments"], "active");
    assert_eq!(account["type"], "standard");
    // What a payer reads by default is what a charge says.
    let charge = app.read(&format!("/v1/charges/{}", app.charge().await)).await;
    let descriptor = &account["settings"]["payments"]["statement_descriptor"];
    assert_eq!(*descriptor, charge["calculated_statement_descriptor"]);
    let expanded = app.read("/v1/account?expand[]=settings.branding.icon").await;
    assert_eq!(expanded, account);
}

#[tokio::test]
async fn each_key_sees_its_own_account_and_no_other() {
    let app = TestApp::spawn();
    let other = app.database.other_account();
    let get = async |key: &str, path: &str| app.call_as(key, Method::GET, path).send().await;
    let own = app.read("/v1/account").await;
    let others = get(&other, "/v1/account").await.expect(200);
    assert_ne!(others.body["id"], own["id"]);
    assert_eq!(app.read(&format!("/v1/accounts/{}", own["id"].as_str().unwrap())).await, own);
    for path in [format!("/v1/accounts/{}", others.id()), "/v1/accounts/x".to_owned()] {
        app.get(&path).send().await.expect_error(404, "resource_missing");
    }
    // All else of accounts is Stripe's, and not here.
    for path in ["/v1/accounts", "/v1/accounts/acct_1/capabilities"] {
        let error = app.get(path).send().await.expect_error(404, "");
        assert!(error.body["error"]["message"].as_str().unwrap().contains("part of Stripe's API"));
    }
    let changed = app.post("/v1/account").key("k").form("email=a@b.c").send().await.expect_error(405, "");
    assert_eq!(changed.header("Allow"), Some("GET, HEAD"));
}
