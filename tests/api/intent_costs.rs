//! What intents cost: round trips, statements of a list, and how tables of some size are read.

use std::sync::Arc;
use std::time::Duration;

use oncepay::sweeper::sweep;

use crate::support::intents::PRICE;
use crate::support::{Tap, TestApp, TestDatabase, eventually};

/// A server with one connection, which is listened in on.
fn tapped(database: &Arc<TestDatabase>) -> (TestApp, Tap) {
    let tap = Tap::on(database);
    let app = TestApp::with(|builder| {
        builder.database = Some(Arc::clone(database));
        builder.url = Some(tap.url.clone());
        builder.pool_size = 1;
    });
    (app, tap)
}

#[tokio::test]
async fn a_confirmed_intent_takes_at_most_ten_round_trips() {
    let database = Arc::new(TestDatabase::new());
    let (app, tap) = tapped(&database);
    let customer = app.customer().await;
    let method = app.kept_method("visa", &customer).await;
    let mut costs = Vec::new();
    for form in [
        "payment_method=pm_card_visa".to_owned(),
        "payment_method_data[card][token]=tok_visa".to_owned(),
        "payment_method=pm_card_visa&capture_method=manual".to_owned(),
        format!("customer={customer}&payment_method={method}"),
        format!("customer={customer}&payment_method=pm_card_visa&setup_future_usage=off_session"),
    ] {
        let form = format!("{PRICE}&confirm=true&{form}");
        // The first request on a connection looks up types.
        app.submit("/v1/payment_intents", &form).await.expect(201);
        let before = tap.statements();
        app.submit("/v1/payment_intents", &form).await.expect(201);
        costs.push(tap.statements() - before);
    }
    let declined = format!("{PRICE}&confirm=true&payment_method=pm_card_chargeDeclined");
    app.submit("/v1/payment_intents", &declined).await.expect(402);
    let before = tap.statements();
    app.submit("/v1/payment_intents", &declined).await.expect(402);
    costs.push(tap.statements() - before);
    let confirm = async |form: &str| {
        let intent = app.intent(form).await;
        let path = format!("/v1/payment_intents/{}/confirm", intent["id"].as_str().unwrap());
        let before = tap.statements();
        app.submit(&path, "").await.expect(200);
        tap.statements() - before
    };
    confirm("payment_method=pm_card_visa").await;
    costs.push(confirm("payment_method=pm_card_visa").await);
    println!("round trips: {costs:?}");
    assert!(costs.iter().all(|cost| (5..=10).contains(cost)), "{costs:?}");
}

#[tokio::test]
async fn a_list_of_a_hundred_with_two_expansions_takes_four_statements_at_most() {
    let database = Arc::new(TestDatabase::new());
    let (app, tap) = tapped(&database);
    for _ in 0..100 {
        let customer = app.customer().await;
        let form = format!("{PRICE}&customer={customer}&confirm=true&payment_method=pm_card_visa");
        let intent = app.submit("/v1/payment_intents", &form).await.expect(201);
        app.submit("/v1/refunds", &format!("payment_intent={}&amount=1", intent.id())).await.expect(201);
    }
    for (query, objects) in [
        ("payment_intents?expand[]=data.customer&expand[]=data.latest_charge", ["customer", "latest_charge"]),
        (
            "payment_intents?expand[]=data.payment_method&expand[]=data.latest_charge",
            ["payment_method", "latest_charge"],
        ),
        ("charges?expand[]=data.payment_intent&expand[]=data.customer", ["payment_intent", "customer"]),
        (
            "refunds?expand[]=data.payment_intent&expand[]=data.payment_method",
            ["payment_intent", "payment_method"],
        ),
    ] {
        let path = format!("/v1/{query}&limit=100");
        app.read(&path).await;
        let before = tap.statements();
        let list = app.read(&path).await;
        // The account, BEGIN and ROLLBACK come to it.
        let statements = tap.statements() - before - 3;
        let rows = list["data"].as_array().unwrap();
        assert_eq!(rows.len(), 100);
        assert!(
            rows.iter().all(|row| objects.iter().all(|object| row[*object]["id"].is_string())),
            "{query}"
        );
        assert!((3..=4).contains(&statements), "{query} took {statements}");
    }
}

const ROWS: usize = 20_000;

/// The first intent, its charge and its refund many times over, under ids that are older than all others.
fn multiply(database: &TestDatabase) {
    let id = |of: &str| format!("('0190' || lpad(to_hex({of}), 28, '0'))::uuid");
    let own = id("n");
    let fill = |table: &str, changed: &str| {
        database.execute(&format!(
            "INSERT INTO {table} SELECT row.* FROM (SELECT * FROM {table} ORDER BY id LIMIT 1) AS model \
             CROSS JOIN generate_series(1, {ROWS}) AS n \
             CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, \
             to_jsonb(model) || jsonb_build_object('id', {own}, {changed})) AS row"
        ));
        database.execute(&format!("VACUUM ANALYZE {table}"));
    };
    let customer = id("1 + n % 300");
    fill("customers", "'email', NULL");
    fill("payment_methods", &format!("'customer_id', {customer}"));
    fill("payment_intents", &format!("'customer_id', {customer}"));
    fill("charges", &format!("'customer_id', {customer}, 'payment_intent_id', {own}"));
    fill("refunds", &format!("'charge_id', {own}, 'payment_intent_id', {own}"));
    database.execute("VACUUM ANALYZE charges");
    database.execute("VACUUM ANALYZE payment_intents");
}

/// How often each table was read from end to end, once nobody else is connected who has not yet reported.
fn sequential_scans(database: &TestDatabase) -> String {
    eventually("the end of all other connections", || {
        database.number(
            "SELECT count(*) AS number FROM pg_stat_activity WHERE datname = current_database() \
             AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
        ) == 0
    });
    database.text(
        "SELECT string_agg(relname || ' ' || seq_scan, ', ' ORDER BY relname) AS text FROM pg_stat_user_tables \
         WHERE relname IN ('customers', 'charges', 'refunds', 'payment_intents', 'payment_methods')",
    )
}

/// A database with many intents, of which the newest two are holds, one of them without an intent.
async fn large() -> Arc<TestDatabase> {
    let database = Arc::new(TestDatabase::new());
    let app = on(&database);
    let intent = app.intent("confirm=true&payment_method=pm_card_visa").await;
    app.submit("/v1/refunds", &format!("payment_intent={}", intent["id"].as_str().unwrap()))
        .await
        .expect(201);
    app.customer().await;
    app.intent_in("requires_capture").await;
    app.submit("/v1/charges", &format!("{PRICE}&source=tok_visa&capture=false")).await.expect(201);
    drop(app);
    multiply(&database);
    database
}

fn on(database: &Arc<TestDatabase>) -> TestApp {
    TestApp::with(|builder| {
        builder.database = Some(Arc::clone(database));
        builder.pool_size = 1;
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_filter_of_a_list_of_intents_and_what_belongs_to_them_reads_a_table_from_end_to_end() {
    let database = large().await;
    let id = |prefix: &str, number: usize| format!("{prefix}_0190{number:028x}");
    let mut paths = Vec::new();
    for (list, prefix) in [("payment_intents", "pi"), ("payment_methods", "pm")] {
        for query in [
            String::new(),
            "limit=100".to_owned(),
            format!("starting_after={}", id(prefix, 9000)),
            format!("ending_before={}", id(prefix, 9000)),
            format!("customer={}", id("cus", 7)),
            format!("customer={}", id("cus", 19_999)),
            format!("customer={}&starting_after={}", id("cus", 7), id(prefix, 9000)),
            "expand[]=data.customer&limit=100".to_owned(),
        ] {
            paths.push(format!("/v1/{list}?{query}"));
        }
    }
    for list in ["charges", "refunds"] {
        paths.push(format!("/v1/{list}?payment_intent={}", id("pi", 7)));
        paths.push(format!("/v1/{list}?payment_intent={}&limit=100", id("pi", 19_999)));
        paths.push(format!("/v1/{list}?expand[]=data.payment_intent&limit=100"));
    }
    paths.push("/v1/payment_intents?created[gt]=1700000000&created[lt]=1800000000".to_owned());
    paths.push(
        "/v1/payment_intents?expand[]=data.latest_charge&expand[]=data.payment_method&limit=100".to_owned(),
    );
    paths.push(format!("/v1/customers/{}/payment_methods", id("cus", 7)));
    let mut before = sequential_scans(&database);
    let mut wrong = Vec::new();
    for path in paths {
        // The server ends with each, so that what it did is reported.
        let app = on(&database);
        for _ in 0..7 {
            // Past the point where a prepared statement may get a plan for all parameters.
            app.get(&path).send().await.expect(200);
        }
        drop(app);
        let after = sequential_scans(&database);
        if after != before {
            wrong.push(format!("{path}: {before} became {after}"));
        }
        before = after;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The count does tell.
    database.number("SELECT count(description) AS number FROM payment_intents");
    assert_ne!(sequential_scans(&database), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweeper_looks_for_holds_in_their_index_alone() {
    let database = large().await;
    let scans = || {
        database
            .number("SELECT idx_scan AS number FROM pg_stat_user_indexes WHERE indexrelname = 'charges_held'")
    };
    let (before, held) = (sequential_scans(&database), scans());
    let app = on(&database);
    app.state.clock.advance(Duration::from_secs(8 * 24 * 3600));
    // Two holds are let go, and then it looks in vain for a while.
    let mut found = 0;
    for _ in 0..10 {
        found += i32::from(sweep(&app.state).await.expect("the sweeper works"));
    }
    assert!((1..=2).contains(&found), "{found}");
    drop(app);
    assert_eq!(sequential_scans(&database), before);
    // Each time it looks twice, for intents and for charges without one.
    assert!(scans() >= held + 20, "{held} became {}", scans());
    assert_eq!(database.number("SELECT count(*) AS number FROM charges WHERE status = 'authorised'"), 0);
}
