//! The audit can fail. The test removes the constraints of its database and breaks each rule by hand, and the audit
//! reports that rule alone.

use std::collections::BTreeSet;

use chrono::Datelike;

use super::audit_of_intents;
use crate::support::network::closed_dispute;
use crate::support::{TestApp, TestDatabase, fresh_key};

/// The objects on which the rules are broken: a charge and its refund, a hold and its capture, a customer with a card,
/// a token that was used, a decline.
async fn scene() -> TestApp {
    let app = TestApp::spawn();
    let post = async |path: &str, body: &str| {
        app.post(path).key(&fresh_key()).form(body).send().await.expect(201).id().to_owned()
    };
    let money = "amount=1000&currency=usd";
    for _ in 0..2 {
        let charge = post("/v1/charges", &format!("{money}&source=tok_visa")).await;
        post("/v1/refunds", &format!("charge={charge}&amount=400")).await;
        post("/v1/refunds", &format!("charge={charge}&amount=100")).await;
        post("/v1/customers", "source=tok_visa&name=A").await;
    }
    let hold = post("/v1/charges", &format!("{money}&source=tok_visa&capture=false")).await;
    let capture = app.post(&format!("/v1/charges/{hold}/capture")).key(&fresh_key());
    capture.form("amount=600").send().await.expect(200);
    let hold = post("/v1/charges", &format!("{money}&source=tok_visa&capture=false")).await;
    post("/v1/refunds", &format!("charge={hold}")).await;
    let year = chrono::Utc::now().year() + 2;
    let card = format!("card[number]=4242424242424242&card[exp_month]=12&card[exp_year]={year}");
    let token = post("/v1/tokens", &card).await;
    post("/v1/charges", &format!("{money}&source={token}")).await;
    post("/v1/charges", &format!("{money}&source=tok_visa&description=plain")).await;
    // A card that a customer has used more than once is detached.
    let token = post("/v1/tokens", &card).await;
    let customer = post("/v1/customers", &format!("source={token}")).await;
    for _ in 0..2 {
        post("/v1/charges", &format!("{money}&customer={customer}")).await;
    }
    let kept = app.read(&format!("/v1/customers/{customer}/payment_methods")).await;
    let detach = format!("/v1/payment_methods/{}/detach", kept["data"][0]["id"].as_str().unwrap());
    app.submit(&detach, "").await.expect(200);
    let declined = app.post("/v1/charges").key(&fresh_key());
    declined.form(&format!("{money}&source=tok_chargeDeclined")).send().await.expect(402);
    let charge = post("/v1/charges", &format!("{money}&source=tok_visa")).await;
    let refund = post("/v1/refunds", &format!("charge={charge}&amount=400")).await;
    app.send_notification("refund.failed", serde_json::json!({ "refund": refund })).await;
    for outcome in ["won", "lost", ""] {
        let charge = post("/v1/charges", &format!("{money}&source=tok_visa")).await;
        let dispute = app.disputed(&charge).await;
        if !outcome.is_empty() {
            app.send_notification("dispute.closed", closed_dispute(&dispute, &charge, outcome)).await;
        }
    }
    app.database.assert_clean();
    app
}

/// Drops every constraint but the primary keys, and every unique index.
fn lift_constraints(database: &TestDatabase) {
    database.execute(
        "DO $$ DECLARE it record; BEGIN \
             FOR it IN SELECT conname, conrelid::regclass AS owner FROM pg_constraint \
                 WHERE contype IN ('c', 'f') AND connamespace = 'public'::regnamespace LOOP \
                 EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', it.owner, it.conname); \
             END LOOP; \
             FOR it IN SELECT indexrelid::regclass AS name FROM pg_index JOIN pg_class ON oid = indexrelid \
                 WHERE indisunique AND NOT indisprimary AND relnamespace = 'public'::regnamespace \
                 AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = indexrelid) LOOP \
                 EXECUTE format('DROP INDEX %s', it.name); \
             END LOOP; \
         END $$",
    );
}

/// The statements that break each rule, and no other.
const BREAKS: &[(&str, &str)] = &[
    (
        "every remembered answer has its effect",
        "INSERT INTO idempotency_records SELECT account_id, source, 'another', fingerprint_version, fingerprint, \
             gen_random_uuid(), status, content_type, location, sealed, body, created_at, expires_at \
             FROM idempotency_records LIMIT 1",
    ),
    (
        // Its card is still there, and is no effect of its own.
        "every remembered answer has its effect",
        "WITH gone AS (DELETE FROM charges WHERE description = 'plain' RETURNING request_id), \
             ledger AS (DELETE FROM balance_transactions WHERE request_id IN (SELECT request_id FROM gone)) \
             DELETE FROM events WHERE request_id IN (SELECT request_id FROM gone)",
    ),
    (
        "every effect of a key that is remembered is of the request that was remembered",
        "INSERT INTO events SELECT account_id, gen_random_uuid(), gen_random_uuid(), idempotency_key, \
             'customer.updated', payload, created_at FROM events WHERE type = 'customer.created' LIMIT 1",
    ),
    (
        "a request makes at most one charge, one refund, one customer, one payment intent",
        "UPDATE customers SET request_id = (SELECT request_id FROM customers LIMIT 1)",
    ),
    (
        "every charge has the one event of its beginning",
        "UPDATE events SET type = 'charge.updated' WHERE type = 'charge.failed'",
    ),
    (
        "every charge has the one event of its beginning",
        "INSERT INTO events SELECT account_id, gen_random_uuid(), request_id, idempotency_key, type, payload, created_at \
             FROM events WHERE type = 'charge.succeeded' LIMIT 1",
    ),
    (
        "every refund has its two events",
        "DELETE FROM events WHERE id = (SELECT id FROM events WHERE type = 'charge.refunded' LIMIT 1)",
    ),
    (
        "every capture after an authorisation has its event",
        "UPDATE events SET type = 'charge.updated' WHERE type = 'charge.captured'",
    ),
    (
        "refunded <= captured <= amount",
        "UPDATE charges SET amount = amount_captured - 1 WHERE status = 'captured'",
    ),
    (
        "what a charge says was refunded is the sum of its refunds",
        "WITH charge AS (UPDATE charges SET amount_refunded = amount_refunded + 7 \
                 WHERE id = (SELECT id FROM charges WHERE amount_captured > amount_refunded + 7 LIMIT 1) RETURNING *) \
             INSERT INTO balance_transactions SELECT account_id, gen_random_uuid(), request_id, 'refund', id, \
                 gen_random_uuid(), -7, currency, created_at FROM charge",
    ),
    (
        "every charge's ledger is what it captured, less what it refunded",
        "WITH pair AS (SELECT min(id::text)::uuid AS one, max(id::text)::uuid AS other FROM balance_transactions \
                 WHERE kind = 'charge') \
             UPDATE balance_transactions SET amount = amount + CASE id WHEN pair.one THEN 1 ELSE -1 END \
                 FROM pair WHERE id IN (pair.one, pair.other)",
    ),
    (
        "every refund has its row of the ledger, with its amount; or it let the whole of a hold go",
        "UPDATE refunds SET balance_transaction_id = gen_random_uuid() WHERE balance_transaction_id IS NOT NULL",
    ),
    (
        "every refund has its row of the ledger, with its amount; or it let the whole of a hold go",
        "UPDATE refunds SET amount = amount - 1 WHERE balance_transaction_id IS NULL",
    ),
    (
        "a payment method that no customer has owned paid once",
        "WITH plain AS (SELECT id, payment_method_id FROM charges c WHERE status = 'captured' AND customer_id IS NULL \
                 AND NOT EXISTS (SELECT FROM tokens t WHERE t.payment_method_id = c.payment_method_id) ORDER BY id LIMIT 2) \
             UPDATE charges SET payment_method_id = (SELECT payment_method_id FROM plain ORDER BY id LIMIT 1) \
                 WHERE id IN (SELECT id FROM plain)",
    ),
    (
        "the balance is the sum of captures less refunds and disputes, by account and currency",
        "INSERT INTO balance_transactions SELECT account_id, gen_random_uuid(), request_id, 'charge', \
             gen_random_uuid(), NULL, 1, currency, created_at FROM charges LIMIT 1",
    ),
    (
        "a used token was used by one charge or customer",
        "UPDATE tokens SET used_at = NULL WHERE id = (SELECT t.id FROM tokens t JOIN charges c \
             ON c.payment_method_id = t.payment_method_id LIMIT 1)",
    ),
    (
        "a used token was used by one charge or customer",
        "WITH token AS (SELECT t.payment_method_id FROM tokens t JOIN charges c \
                 ON c.payment_method_id = t.payment_method_id LIMIT 1) \
             UPDATE charges SET payment_method_id = token.payment_method_id FROM token \
                 WHERE status = 'failed' AND customer_id IS NULL AND payment_intent_id IS NULL",
    ),
    (
        "a customer's default card is kept by that customer",
        "UPDATE payment_methods SET customer_id = NULL WHERE customer_id IS NOT NULL",
    ),
    (
        "a failed refund gave its money back, and no other did",
        "UPDATE refunds SET failure_balance_transaction_id = NULL",
    ),
    (
        "a failed refund gave its money back, and no other did",
        "UPDATE refunds SET failure_balance_transaction_id = balance_transaction_id WHERE status = 'failed'",
    ),
    (
        "a failed refund gave its money back, and no other did",
        "UPDATE refunds SET failure_balance_transaction_id = f.id FROM balance_transactions f \
             WHERE f.kind = 'refund_failure' AND status <> 'failed'",
    ),
    (
        "a dispute took its money, and gave it back if it was won",
        "UPDATE balance_transactions SET charge_id = (SELECT charge_id FROM refunds LIMIT 1) WHERE kind = 'dispute'",
    ),
    (
        "a dispute took its money, and gave it back if it was won",
        "UPDATE disputes SET status = CASE status WHEN 'won' THEN 'lost' ELSE 'won' END WHERE status IN ('won', 'lost')",
    ),
    (
        "every dispute and every failed refund has its events",
        "UPDATE events SET type = 'charge.dispute.closed' WHERE type = 'charge.dispute.created'",
    ),
    (
        "every dispute and every failed refund has its events",
        "UPDATE disputes SET status = 'needs_response' WHERE status = 'lost'",
    ),
    (
        "every dispute and every failed refund has its events",
        "DELETE FROM events WHERE type = 'refund.failed'",
    ),
];

#[tokio::test]
async fn each_rule_of_the_audit_reports_its_own_violation_and_no_other() {
    let app = scene().await;
    lift_constraints(&app.database);
    copy_tables(&app.database);
    for (rule, statement) in BREAKS {
        app.database.execute(statement);
        let findings = app.database.audit().findings;
        restore(&app.database);
        let broken = findings.iter().filter(|finding| !finding.broken.is_empty());
        assert_eq!(broken.map(|finding| finding.rule).collect::<Vec<_>>(), [*rule], "{statement}");
    }
    app.database.assert_clean();
    let known: BTreeSet<&str> =
        BREAKS.iter().chain(&audit_of_intents::BREAKS).map(|(rule, _)| *rule).collect();
    let rules: BTreeSet<&str> = app.database.audit().findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(known, rules, "a rule that nobody has seen fail proves nothing");
}

const TABLES: &str = "accounts, api_keys, balance_transactions, charges, customers, disputes, events, idempotency_records, \
                      payment_methods, refunds, tokens";

/// Copies all rows, for `restore`.
fn copy_tables(database: &TestDatabase) {
    for table in TABLES.split(", ") {
        database.execute(&format!("CREATE TABLE kept_{table} AS TABLE {table}"));
    }
}

fn restore(database: &TestDatabase) {
    database.execute(&format!(
        "DO $$ DECLARE name text; BEGIN \
             FOREACH name IN ARRAY string_to_array('{TABLES}', ', ') LOOP \
                 EXECUTE format('DELETE FROM %I', name); \
                 EXECUTE format('INSERT INTO %I TABLE %I', name, 'kept_' || name); \
             END LOOP; \
         END $$"
    ));
}
