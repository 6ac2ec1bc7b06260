//! Query plans: the number of blocks that a request reads does not grow with the tables, whatever it filters by, and
//! however small the tables were when its statements were prepared.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use diesel::prelude::*;
use oncepay::app::sweeper::sweep;
use oncepay::error::Error;

use crate::support::samples::{make, samplers};
use crate::support::{HOLD, TestApp, TestDatabase, fresh_key, id_in_sql, id_of};

/// The number of rows. To read any of the tables, or one of its indexes, from end to end takes more than [`BLOCKS`].
const ROWS: usize = 20_001;

/// The most blocks that a request may read: a few for each index of each row that it writes or reads.
const BLOCKS: i64 = 150;
/// The blocks that each row of a list adds.
const BLOCKS_PER_ROW: i64 = 2;

/// The only instance of its database, with one connection, so that its reads can be counted.
fn on(database: &Arc<TestDatabase>) -> TestApp {
    TestApp::with(|builder| {
        builder.database = Some(Arc::clone(database));
        builder.pool_size = 1;
    })
}

/// Fills all tables that grow with use, from rows that the API wrote.
fn multiply(database: &TestDatabase, numbers: Range<usize>) {
    let customer = format!("'customer_id', {}", id_in_sql("1 + n % 50"));
    let own = id_in_sql("n");
    for (table, changed) in [
        ("customers", "'email', CASE WHEN n % 5 = 0 THEN NULL ELSE n % 500 || '@b.c' END".to_owned()),
        ("payment_methods", customer.clone()),
        ("tokens", String::new()),
        ("payment_intents", customer.clone()),
        ("charges", format!("{customer}, 'payment_intent_id', {own}")),
        ("refunds", format!("'charge_id', {own}, 'payment_intent_id', {own}")),
        (
            "balance_transactions",
            format!("'charge_id', {own}, 'currency', CASE WHEN n % 1000 = 0 THEN 'eur' ELSE 'usd' END"),
        ),
        ("disputes", format!("'charge_id', {own}")),
        (
            "events",
            format!(
                "'request_id', {own}, 'type', CASE WHEN n % 1000 = 0 THEN 'refund.created' \
                 WHEN n % 50 = 0 THEN 'customer.created' ELSE 'charge.succeeded' END"
            ),
        ),
        ("webhook_deliveries", format!("'event_id', {own}, 'status', 'delivered'")),
        ("network_notifications", "'delivered_at', now()".to_owned()),
        ("idempotency_records", format!("'request_id', {own}, 'key', 'multiplied ' || n")),
    ] {
        database.multiply(table, &numbers, &changed);
    }
}

/// One of each object, the first of its kind.
async fn models(app: &TestApp) {
    make(app, "/v1/webhook_endpoints", "url=http://127.0.0.1:9/hook&enabled_events[]=charge.refunded").await;
    make(app, "/v1/customers", "email=a%40b.c&source=tok_visa").await;
    let intent = make(
        app,
        "/v1/payment_intents",
        "amount=1000&currency=usd&payment_method=pm_card_createDispute&confirm=true",
    )
    .await;
    make(app, "/v1/refunds", &format!("payment_intent={intent}&amount=1")).await;
    make(app, "/v1/tokens", "card[number]=4242424242424242&card[exp_month]=12&card[exp_year]=2040").await;
    let charge = app.charge().await;
    app.disputed(&charge).await;
}

/// The paths of all pages, with their number of rows where it is not the usual one.
fn pages() -> Vec<(String, i64)> {
    let mut pages = Vec::new();
    for (list, prefix) in [
        ("customers", "cus"),
        ("payment_methods", "pm"),
        ("payment_intents", "pi"),
        ("charges", "ch"),
        ("refunds", "re"),
        ("disputes", "dp"),
        ("balance_transactions", "txn"),
        ("events", "evt"),
    ] {
        for query in [
            String::new(),
            format!("starting_after={}", id_of(prefix, 9000)),
            format!("ending_before={}", id_of(prefix, 9000)),
            "created[gt]=1700000000".to_owned(),
            "created[lt]=1700000000".to_owned(),
            "created=1700000000".to_owned(),
        ] {
            // Stripe has no filter by age for payment methods.
            if list != "payment_methods" || !query.starts_with("created") {
                pages.push((format!("{list}?{query}"), 10));
            }
        }
        pages.push((format!("{list}?limit=100"), 100));
    }
    let customer = id_of("cus", 7);
    for (list, prefix) in [("charges", "ch"), ("payment_intents", "pi"), ("payment_methods", "pm")] {
        let (cursor, childless) = (id_of(prefix, 9000), id_of("cus", 19_999));
        for query in ["", &format!("&ending_before={cursor}"), &format!("&starting_after={cursor}")] {
            pages.push((format!("{list}?customer={customer}{query}"), 10));
            pages.push((format!("{list}?customer={childless}{query}"), 10));
        }
    }
    for list in ["charges", "refunds", "disputes"] {
        pages.push((format!("{list}?payment_intent={}", id_of("pi", 7)), 10));
        pages.push((format!("{list}?payment_intent={}", id_of("pi", 20_000)), 10));
    }
    for list in ["refunds", "disputes"] {
        pages.push((format!("{list}?charge={}", id_of("ch", 7)), 10));
        pages.push((format!("{list}?charge={}", id_of("ch", 20_000)), 10));
    }
    pages.extend(
        [
            "customers?email=7%40b.c",
            "customers?email=nobody%40b.c",
            &format!("customers?email=7%40b.c&ending_before={}", id_of("cus", 9000)),
            &format!("customers/{customer}/payment_methods"),
            "balance_transactions?currency=usd",
            "balance_transactions?currency=eur",
            "balance_transactions?currency=gbp",
            "balance_transactions?type=charge",
            "balance_transactions?type=refund",
            "balance_transactions?type=payout",
            &format!("balance_transactions?source={}", id_of("ch", 7)),
            &format!("balance_transactions?source={}", id_of("re", 7)),
            "events?type=charge.succeeded",
            "events?type=refund.created",
            "events?type=nothing.happened",
            "events?type=charge.*",
            "events?type=customer.*",
            "events?type=refund.*",
            "events?type=nothing.*",
            "events?types[]=refund.created&types[]=customer.created",
            "events?delivery_success=true",
            "events?delivery_success=false",
            "webhook_endpoints?limit=10",
        ]
        .map(|path| (path.to_owned(), 10)),
    );
    pages.extend(
        [
            "charges?expand[]=data.customer.default_source&expand[]=data.balance_transaction&limit=100",
            "charges?expand[]=data.payment_intent&limit=100",
            "charges?expand[]=data.refunds&limit=100",
            "customers?expand[]=data.sources&limit=100",
            "refunds?expand[]=data.charge&expand[]=data.payment_intent&limit=100",
            "disputes?expand[]=data.charge&limit=100",
            "payment_methods?expand[]=data.customer&limit=100",
            "payment_intents?expand[]=data.latest_charge&expand[]=data.payment_method&limit=100",
        ]
        .map(|path| (path.to_owned(), 300)),
    );
    pages
}

async fn blocks_of_reading(app: &TestApp, path: &str) -> i64 {
    app.blocks_of(async || drop(app.read(path).await)).await
}

/// The pages among these that read more blocks than their rows need.
async fn costly(app: &TestApp, pages: Vec<(String, i64)>) -> Vec<String> {
    let mut costly = Vec::new();
    for (path, rows) in pages {
        let blocks = blocks_of_reading(app, &format!("/v1/{path}")).await;
        if blocks > BLOCKS + rows * BLOCKS_PER_ROW {
            costly.push(format!("{path}: {blocks}"));
        }
    }
    costly
}

/// The only instance of a database with full tables.
async fn large() -> TestApp {
    let database = Arc::new(TestDatabase::new());
    let app = on(&database);
    models(&app).await;
    multiply(&database, 1..ROWS);
    database.execute("VACUUM ANALYZE");
    app
}

#[tokio::test(flavor = "multi_thread")]
async fn no_filter_of_a_list_looks_at_more_than_its_page() {
    let app = large().await;
    let wrong = costly(&app, pages()).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The count does notice a query that reads too much.
    let all = app
        .blocks_of(async || {
            let count = app.state.engine.database.run(|connection| {
                diesel::sql_query("SELECT count(description) FROM charges")
                    .execute(connection)
                    .map_err(Error::from)
            });
            count.await.unwrap().unwrap();
        })
        .await;
    assert!(all > 2 * BLOCKS, "{all}");
    // One account owns all rows, so the sum is over the whole ledger. The index alone has all that the sum needs.
    let ledger = app.database.number("SELECT pg_relation_size('balance_transactions') / 8192 AS number");
    let sum = blocks_of_reading(&app, "/v1/balance").await;
    assert!((BLOCKS..ledger).contains(&sum), "{sum} of {ledger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweeper_finds_a_hold_among_many_charges() {
    let app = large().await;
    make(&app, "/v1/charges", HOLD).await;
    let intent = "amount=1000&currency=usd&payment_method=pm_card_visa&capture_method=manual&confirm=true";
    make(&app, "/v1/payment_intents", intent).await;
    app.state.clock.advance(Duration::from_secs(8 * 24 * 3600));
    // The sweeper takes a batch of expired records. This test is not about those.
    app.database.execute("TRUNCATE idempotency_records");
    // Two holds are released, and then the sweeper finds none.
    for _ in 0..4 {
        let swept = async || assert!(sweep(&app.state).await.is_ok());
        let blocks = app.blocks_of(swept).await;
        assert!(blocks <= BLOCKS, "{blocks}");
    }
    assert_eq!(app.database.number("SELECT count(*) AS number FROM charges WHERE status = 'authorised'"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_prepared_on_small_tables_keeps_a_good_plan_when_they_are_full() {
    // The smallest size at which autovacuum analyses a table.
    let begin = |database: &TestDatabase| {
        multiply(database, 1..60);
        database.execute("ANALYZE");
        60
    };
    // Pages that name none of the many rows. The planner cannot know the number of undelivered events before the next
    // ANALYZE, which autovacuum runs within a minute.
    let mut pages = pages();
    pages.retain(|(path, _)| !path.contains("_0190") && !path.contains("delivery_success"));
    assert_plans_last(begin, pages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_prepared_on_nearly_empty_tables_keeps_a_good_plan_when_they_are_full() {
    // Lists are planned anew each time, and the planner knows nothing of a table that was never analysed.
    assert_plans_last(|_| 1, Vec::new()).await;
}

/// Prepares all statements after `begin`, and counts the blocks that they read when the tables are full. `begin`
/// returns the number of the first row that is still to come.
async fn assert_plans_last(begin: impl Fn(&TestDatabase) -> usize, pages: Vec<(String, i64)>) {
    let database = Arc::new(TestDatabase::new());
    let app = on(&database);
    models(&app).await;
    let customer = make(&app, "/v1/customers", "source=tok_visa").await;
    let expanding = format!("amount=1000&currency=usd&customer={customer}&expand[]=customer.default_source");
    // Autovacuum must not analyse a table during the test, because the statements would then be planned anew.
    let tables = database.text(
        "SELECT string_agg(format('ALTER TABLE %I SET (autovacuum_enabled = off)', tablename), '; ') AS text \
         FROM pg_tables WHERE schemaname = 'public'",
    );
    for statement in tables.split("; ") {
        database.execute(statement);
    }
    let next = begin(&database);
    for sampler in samplers() {
        // PostgreSQL chooses a lasting plan at the sixth execution.
        for _ in 0..7 {
            let sample = (sampler.make)(&app).await;
            app.submit(&sample.path, sample.body).await;
            forget_endpoints(&database);
        }
    }
    for _ in 0..7 {
        make(&app, "/v1/charges", &expanding).await;
        for (path, _) in &pages {
            app.read(&format!("/v1/{path}")).await;
        }
    }
    multiply(&database, next..ROWS);
    let mut wrong = Vec::new();
    for sampler in samplers() {
        let sample = (sampler.make)(&app).await;
        let key = fresh_key();
        let send = async || drop(app.post(&sample.path).key(&key).form(sample.body).send().await);
        let (first, replay) = (app.blocks_of(send).await, app.blocks_of(send).await);
        forget_endpoints(&database);
        if first > BLOCKS || replay > 10 {
            wrong.push(format!("POST {}: {first}, and its replay {replay}", sampler.path));
        }
    }
    wrong.extend(costly(&app, pages).await);
    let expanded = app.blocks_of(async || drop(make(&app, "/v1/charges", &expanding).await)).await;
    if expanded > BLOCKS {
        wrong.push(format!("POST /v1/charges with two expansions: {expanded}"));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Deletes all endpoints. An account can have only a few, and each would receive the events of all later samples.
fn forget_endpoints(database: &TestDatabase) {
    database.execute("UPDATE webhook_endpoints SET deleted_at = now() WHERE deleted_at IS NULL");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_compares_no_row_with_every_other() {
    let app = large().await;
    // It takes less than a second; a rule that compares each row of two tables takes ten.
    let begun = Instant::now();
    app.database.audit();
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn types_of_events_are_sorted_by_their_bytes_on_a_server_of_another_language_too() {
    let database = TestDatabase::new();
    let collation = "SELECT collation_name::text AS text FROM information_schema.columns \
                     WHERE table_name = 'events' AND column_name = 'type'";
    assert_eq!(database.text(collation), "C");
}
