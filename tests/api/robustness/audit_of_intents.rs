//! The audit's rules about intents can fail: each is broken by hand, with what would forbid it taken out of the test's
//! database, and that rule alone is reported.

use crate::support::{TestApp, TestDatabase};

/// Whatever a rule about intents needs to be broken on.
async fn scene() -> TestApp {
    let app = TestApp::spawn();
    for status in ["succeeded", "requires_capture", "canceled", "succeeded", "requires_action"] {
        app.intent_in(status).await;
    }
    let refunded = app.intent_in("succeeded").await;
    let refund = format!("payment_intent={}&amount=10", refunded["id"].as_str().unwrap());
    app.submit("/v1/refunds", &refund).await.expect(201);
    let customer = app.customer().await;
    let method = app.kept_method("visa", &customer).await;
    let default = format!("invoice_settings[default_payment_method]={method}");
    app.submit(&format!("/v1/customers/{customer}"), &default).await.expect(200);
    app.method("visa").await;
    app.database.assert_clean();
    app
}

/// Takes every check, foreign key and unique index but the primary keys out of the database.
fn lift_constraints(database: &TestDatabase) {
    database.execute(
        "DO $$ DECLARE it record; BEGIN \
             FOR it IN SELECT conname, conrelid::regclass AS owner FROM pg_constraint \
                 WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace LOOP \
                 EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', it.owner, it.conname); \
             END LOOP; \
             DROP INDEX charges_one_for_intent; \
         END $$",
    );
}

const MONEY: &str = "an intent holds or has what its charge holds or moved, and no other charge does";
const EVENTS: &str = "every intent has the one event of its beginning, and those of its end";

/// How each rule is broken and nothing else is.
pub const BREAKS: [(&str, &str); 11] = [
    (
        "a request makes at most one charge, one refund, one customer, one payment intent",
        "UPDATE payment_intents SET request_id = (SELECT request_id FROM payment_intents LIMIT 1)",
    ),
    (MONEY, "UPDATE payment_intents SET amount_received = amount_received - 1 WHERE status = 'succeeded'"),
    (MONEY, "UPDATE payment_intents SET amount_received = 1 WHERE status = 'requires_capture'"),
    (MONEY, "UPDATE charges SET status = 'released' WHERE status = 'authorised'"),
    (
        MONEY,
        "UPDATE payment_intents SET latest_charge_id = gen_random_uuid() WHERE status = 'requires_capture'",
    ),
    (
        MONEY,
        "UPDATE charges SET payment_intent_id = (SELECT id FROM payment_intents WHERE status = 'canceled') \
             WHERE status = 'authorised'",
    ),
    (
        EVENTS,
        "UPDATE events SET type = 'charge.updated' WHERE id = \
             (SELECT id FROM events WHERE type = 'payment_intent.created' LIMIT 1)",
    ),
    (EVENTS, "UPDATE events SET type = 'charge.updated' WHERE type = 'payment_intent.canceled'"),
    (
        EVENTS,
        "INSERT INTO events SELECT account_id, gen_random_uuid(), request_id, idempotency_key, type, payload, created_at \
             FROM events WHERE type = 'payment_intent.succeeded' LIMIT 1",
    ),
    ("every refund is of the intent of its charge", "UPDATE refunds SET payment_intent_id = NULL"),
    (
        "a customer's default card is kept by that customer",
        "UPDATE customers SET default_payment_method_id = \
             (SELECT id FROM payment_methods WHERE customer_id IS NULL LIMIT 1)",
    ),
];

#[tokio::test]
async fn each_rule_about_intents_finds_what_breaks_it() {
    for (rule, statement) in BREAKS {
        let app = scene().await;
        lift_constraints(&app.database);
        app.database.execute(statement);
        let report = app.database.audit();
        let broken = report.findings.iter().filter(|finding| !finding.broken.is_empty());
        let broken: Vec<&str> = broken.map(|finding| finding.rule).collect();
        assert_eq!(broken, [rule], "{statement}\n{report}");
    }
}
