//! How lists are read: on tables of some size, by an index whatever the filter.

use std::sync::Arc;

use crate::support::{TestApp, TestDatabase, eventually};

const ROWS: usize = 20_000;

/// Rows as the API writes them, many times over, under ids that are older than all others.
fn multiply(database: &TestDatabase) {
    let id = |of: &str| format!("('0190' || lpad(to_hex({of}), 28, '0'))::uuid");
    let own = id("n");
    let fill = |table: &str, changed: &str| {
        database.execute(&format!(
            "INSERT INTO {table} SELECT row.* FROM (SELECT * FROM {table} LIMIT 1) AS model \
             CROSS JOIN generate_series(1, {ROWS}) AS n \
             CROSS JOIN LATERAL jsonb_populate_record(NULL::{table}, \
             to_jsonb(model) || jsonb_build_object('id', {own}, {changed})) AS row"
        ));
    };
    fill("customers", "'email', CASE WHEN n % 5 = 0 THEN NULL ELSE n % 500 || '@b.c' END");
    fill("charges", &format!("'customer_id', {}", id("1 + n % 300")));
    fill("refunds", &format!("'charge_id', {}", id("1 + n % 5000")));
    fill(
        "balance_transactions",
        &format!("'charge_id', {own}, 'currency', CASE WHEN n % 1000 = 0 THEN 'eur' ELSE 'usd' END"),
    );
    fill(
        "events",
        "'type', CASE WHEN n % 1000 = 0 THEN 'refund.created' WHEN n % 50 = 0 THEN 'customer.created' \
         ELSE 'charge.succeeded' END",
    );
    for table in ["customers", "charges", "refunds", "balance_transactions", "events", "payment_methods"] {
        database.execute(&format!("VACUUM ANALYZE {table}"));
    }
}

/// How often a table was read from end to end, once nobody else is connected who has not yet reported.
fn sequential_scans(database: &TestDatabase) -> String {
    eventually("the end of all other connections", || {
        database.number(
            "SELECT count(*) AS number FROM pg_stat_activity WHERE datname = current_database() \
             AND backend_type = 'client backend' AND pid <> pg_backend_pid()",
        ) == 0
    });
    database.text(
        "SELECT string_agg(relname || ' ' || seq_scan, ', ' ORDER BY relname) AS text FROM pg_stat_user_tables \
         WHERE relname IN ('customers', 'charges', 'refunds', 'balance_transactions', 'events')",
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn no_filter_of_a_list_reads_a_table_from_end_to_end() {
    let database = Arc::new(TestDatabase::new());
    let on_it = || {
        let database = Arc::clone(&database);
        TestApp::with(|builder| {
            builder.database = Some(database);
            builder.pool_size = 1;
        })
    };
    let app = on_it();
    app.submit("/v1/customers", "email=a%40b.c&source=tok_visa").await.expect(201);
    let charge = app.charge().await;
    let refund = app.submit("/v1/refunds", &format!("charge={charge}&amount=1")).await.expect(201);
    let refund = refund.id().to_owned();
    // The ledger's model has to be the row of the charge.
    database.execute("ALTER TABLE refunds DROP CONSTRAINT refunds_balance_transaction_fkey");
    database.execute("DELETE FROM balance_transactions WHERE kind = 'refund'");
    drop(app);
    multiply(&database);
    let id = |prefix: &str, number: usize| format!("{prefix}_0190{number:028x}");
    let mut paths = Vec::new();
    for (list, prefix) in [
        ("customers", "cus"),
        ("charges", "ch"),
        ("refunds", "re"),
        ("balance_transactions", "txn"),
        ("events", "evt"),
    ] {
        for query in [
            String::new(),
            "limit=100".to_owned(),
            format!("starting_after={}", id(prefix, 9000)),
            format!("ending_before={}", id(prefix, 9000)),
            "created[gt]=1700000000".to_owned(),
            "created[lt]=1700000000".to_owned(),
            "created=1700000000".to_owned(),
        ] {
            paths.push(format!("/v1/{list}?{query}"));
        }
    }
    paths.extend(
        [
            "customers?email=7%40b.c",
            "customers?email=nobody%40b.c",
            &format!("customers?email=7%40b.c&ending_before={}", id("cus", 9000)),
            &format!("charges?customer={}", id("cus", 7)),
            &format!("charges?customer={}", id("cus", 19_999)),
            &format!("charges?customer={}&starting_after={}", id("cus", 7), id("ch", 9000)),
            "charges?expand[]=data.customer.default_source&expand[]=data.balance_transaction&limit=100",
            &format!("refunds?charge={}", id("ch", 7)),
            &format!("refunds?charge={}", id("ch", 19_999)),
            "refunds?expand[]=data.charge&limit=100",
            "balance_transactions?currency=usd",
            "balance_transactions?currency=eur",
            "balance_transactions?currency=gbp",
            "balance_transactions?type=charge",
            "balance_transactions?type=refund",
            "balance_transactions?type=payout",
            &format!("balance_transactions?source={}", id("ch", 7)),
            &format!("balance_transactions?source={refund}"),
            "events?type=charge.succeeded",
            "events?type=refund.created",
            "events?type=nothing.happened",
            "events?type=charge.*",
            "events?type=customer.*",
            "events?type=refund.*",
            "events?type=nothing.*",
            "events?types[]=refund.created&types[]=customer.created",
        ]
        .map(|path| format!("/v1/{path}")),
    );
    let mut before = sequential_scans(&database);
    let mut wrong = Vec::new();
    for path in paths {
        // The server ends with each, so that what it did is reported.
        let app = on_it();
        app.get(&path).send().await.expect(200);
        drop(app);
        let after = sequential_scans(&database);
        if after != before {
            wrong.push(format!("{path}: {before} became {after}"));
        }
        before = after;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The count does tell.
    database.number("SELECT count(description) AS number FROM charges");
    assert_ne!(sequential_scans(&database), before);
    // One account owns all rows here, so their sum is over the whole ledger. By default the planner takes a disk for
    // one that seeks slowly, and would then rather read the table; the index has all that the sum needs.
    database.execute(&format!("ALTER DATABASE {} SET random_page_cost = 1.1", database.name));
    let before = sequential_scans(&database);
    let app = on_it();
    app.read("/v1/balance").await;
    drop(app);
    assert_eq!(sequential_scans(&database), before);
}

#[test]
fn types_of_events_are_sorted_by_their_bytes_on_a_server_of_another_language_too() {
    let database = TestDatabase::new();
    let collation = "SELECT collation_name::text AS text FROM information_schema.columns \
                     WHERE table_name = 'events' AND column_name = 'type'";
    assert_eq!(database.text(collation), "C");
}
