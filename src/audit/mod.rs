//! Every rule of the data, computed again from the rows: what the tests and `oncepay audit` ask after a storm.
//!
//! Each rule is one statement that finds the rows which break it; a clean audit finds none. All see one moment.

use std::collections::BTreeMap;
use std::fmt;

use diesel::connection::SimpleConnection;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

/// A rule, and how to find what breaks it.
struct Rule {
    name: &'static str,
    /// Selects one text column, `broken`.
    statement: &'static str,
}

/// What an audit found.
#[derive(Debug, Default)]
pub struct Report {
    pub findings: Vec<Finding>,
}

/// A rule and the rows that break it.
#[derive(Debug)]
pub struct Finding {
    pub rule: &'static str,
    /// How many rows there are in the tables that it reads.
    pub rows: i64,
    /// The first of them, as they show themselves.
    pub broken: Vec<String>,
}

/// How many rows of a broken rule are shown.
const SHOWN: usize = 10;

#[derive(QueryableByName)]
struct Broken {
    #[diesel(sql_type = Text)]
    broken: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    number: i64,
}

/// Checks all rules.
///
/// # Errors
/// What the statements report.
pub fn audit(connection: &mut PgConnection) -> QueryResult<Report> {
    connection.build_transaction().read_only().repeatable_read().run(|connection| {
        // Every rule is a question about whole tables, and the planner, which thinks of a few rows of one account, would
        // compare each with each.
        connection.batch_execute(
            "SET LOCAL enable_nestloop = off; SET LOCAL enable_mergejoin = off; SET LOCAL work_mem = '64MB'",
        )?;
        let counts = counts(connection)?;
        let mut report = Report::default();
        for rule in RULES {
            let found =
                diesel::sql_query(format!("{} LIMIT {SHOWN}", rule.statement)).load::<Broken>(connection)?;
            let broken = found.into_iter().map(|row| row.broken).collect();
            report.findings.push(Finding { rule: rule.name, rows: rule.rows(&counts), broken });
        }
        Ok(report)
    })
}

/// How many rows each table has.
fn counts(connection: &mut PgConnection) -> QueryResult<BTreeMap<&'static str, i64>> {
    let count = |table: &'static str| {
        let counted = diesel::sql_query(format!("SELECT count(*) AS number FROM {table}"));
        Ok((table, counted.get_result::<Count>(connection)?.number))
    };
    TABLES.into_iter().map(count).collect()
}

impl Rule {
    /// How many rows there are in the tables that the rule reads, which are the words of its statement.
    fn rows(&self, counts: &BTreeMap<&'static str, i64>) -> i64 {
        let words: Vec<&str> =
            self.statement.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_').collect();
        counts.iter().filter(|(table, _)| words.contains(table)).map(|(_, number)| number).sum()
    }
}

impl Report {
    /// Whether every rule holds.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.broken.is_empty())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.findings {
            let verdict = if finding.broken.is_empty() { "holds " } else { "BROKEN" };
            writeln!(out, "{verdict}  {} ({} rows)", finding.rule, finding.rows)?;
            for row in &finding.broken {
                writeln!(out, "          {row}")?;
            }
        }
        Ok(())
    }
}

/// The tables that rules read.
const TABLES: [&str; 11] = [
    "balance_transactions",
    "charges",
    "customers",
    "disputes",
    "events",
    "idempotency_records",
    "payment_intents",
    "payment_methods",
    "refunds",
    "tokens",
    "webhook_endpoints",
];

const RULES: &[Rule] = &[
    Rule {
        name: "every remembered answer has its effect",
        // What it made has the request's id: its events or, where Stripe has none, its row. A change of which Stripe has
        // no event either leaves the object that the answer shows, or shows a secret and is sealed.
        statement: "WITH answers AS ( \
                 SELECT *, CASE WHEN sealed THEN 'webhook_endpoint' \
                     WHEN status IN (200, 201) THEN convert_from(body, 'UTF8')::json ->> 'object' END AS object, \
                     CASE WHEN status = 200 AND NOT sealed THEN convert_from(body, 'UTF8')::json ->> 'id' END AS shows \
                 FROM idempotency_records WHERE source = 'api'), \
             unexplained AS MATERIALIZED ( \
                 SELECT r.* FROM answers r LEFT JOIN ( \
                     SELECT account_id, request_id, NULL AS object FROM events \
                     UNION SELECT account_id, request_id, 'token' FROM tokens \
                     UNION SELECT account_id, request_id, 'payment_method' FROM payment_methods \
                     UNION SELECT account_id, request_id, 'webhook_endpoint' FROM webhook_endpoints) AS made \
                   ON (made.account_id, made.request_id) = (r.account_id, r.request_id) \
                   AND coalesce(made.object, r.object, '') = coalesce(r.object, '') \
                 WHERE made.request_id IS NULL AND NOT (r.status = 200 AND r.sealed)) \
             SELECT format('%s %s', r.key, r.request_id) AS broken FROM unexplained r LEFT JOIN ( \
                 SELECT account_id, 'pi_' || replace(id::text, '-', '') AS id FROM payment_intents \
                 UNION ALL SELECT account_id, 'pm_' || replace(id::text, '-', '') FROM payment_methods \
                 UNION ALL SELECT account_id, 'we_' || replace(id::text, '-', '') FROM webhook_endpoints \
                 UNION ALL SELECT account_id, 'evt_' || replace(id::text, '-', '') FROM events) AS shown \
               ON (shown.account_id, shown.id) = (r.account_id, r.shows) \
             WHERE shown.id IS NULL",
    },
    Rule {
        name: "every effect of a key that is remembered is of the request that was remembered",
        statement: "SELECT format('%s: %s and %s', r.key, r.request_id, e.request_id) AS broken \
             FROM idempotency_records r JOIN events e \
               ON (e.account_id, e.idempotency_key) = (r.account_id, r.key) \
             WHERE r.source = 'api' AND e.request_id <> r.request_id \
               AND e.created_at >= r.created_at AND e.created_at < r.expires_at",
    },
    Rule {
        name: "a request makes at most one charge, one refund, one customer, one payment intent",
        statement: "SELECT format('%s %s times', request_id, count(*)) AS broken FROM ( \
                 SELECT 'charge' AS noun, account_id, request_id FROM charges \
                 UNION ALL SELECT 'refund', account_id, request_id FROM refunds \
                 UNION ALL SELECT 'payment_intent', account_id, request_id FROM payment_intents \
                 UNION ALL SELECT 'customer', account_id, request_id FROM customers) AS made \
             GROUP BY noun, account_id, request_id HAVING count(*) > 1",
    },
    Rule {
        name: "every charge has the one event of its beginning",
        statement: "SELECT c.id::text AS broken FROM charges c LEFT JOIN events e \
               ON (e.account_id, e.request_id) = (c.account_id, c.request_id) \
               AND e.type = CASE c.status WHEN 'failed' THEN 'charge.failed' ELSE 'charge.succeeded' END \
             GROUP BY c.account_id, c.id HAVING count(e.id) <> 1",
    },
    Rule {
        name: "every refund has its two events",
        statement: "SELECT r.id::text AS broken FROM refunds r LEFT JOIN events e \
               ON (e.account_id, e.request_id) = (r.account_id, r.request_id) \
               AND e.type IN ('refund.created', 'charge.refunded') \
             GROUP BY r.account_id, r.id HAVING count(e.id) <> 2",
    },
    Rule {
        name: "every capture after an authorisation has its event",
        statement: "SELECT c.id::text AS broken FROM charges c \
             JOIN balance_transactions b ON (b.account_id, b.id) = (c.account_id, c.balance_transaction_id) \
             WHERE b.request_id <> c.request_id \
               AND 1 <> (SELECT count(*) FROM events e WHERE (e.account_id, e.request_id) = (b.account_id, b.request_id) \
                         AND e.type = 'charge.captured')",
    },
    Rule {
        name: "refunded <= captured <= amount",
        statement: "SELECT id::text AS broken FROM charges \
             WHERE NOT (0 <= amount_refunded AND amount_refunded <= amount_captured AND amount_captured <= amount)",
    },
    Rule {
        name: "what a charge says was refunded is the sum of its refunds",
        statement: "SELECT c.id::text AS broken FROM charges c LEFT JOIN refunds r \
               ON (r.account_id, r.charge_id) = (c.account_id, c.id) \
             AND r.status <> 'failed' AND r.balance_transaction_id IS NOT NULL \
             GROUP BY c.account_id, c.id HAVING c.amount_refunded <> coalesce(sum(r.amount), 0)",
    },
    Rule {
        name: "every charge's ledger is what it captured, less what it refunded",
        statement: "SELECT c.id::text AS broken FROM charges c LEFT JOIN balance_transactions b \
               ON (b.account_id, b.charge_id) = (c.account_id, c.id) \
             GROUP BY c.account_id, c.id \
             HAVING coalesce(sum(b.amount) FILTER (WHERE b.kind IN ('charge', 'refund', 'refund_failure')), 0) \
                     <> c.amount_captured - c.amount_refunded \
                 OR count(b.id) FILTER (WHERE b.currency <> c.currency) > 0",
    },
    Rule {
        name: "every refund has its row of the ledger, with its amount; or it let the whole of a hold go",
        statement: "SELECT r.id::text AS broken FROM refunds r \
             JOIN charges c ON (c.account_id, c.id) = (r.account_id, r.charge_id) \
             LEFT JOIN balance_transactions b \
               ON (b.account_id, b.refund_id) = (r.account_id, r.id) AND b.id = r.balance_transaction_id \
             WHERE CASE WHEN r.balance_transaction_id IS NULL \
                 THEN c.status <> 'released' OR c.amount <> r.amount OR r.status <> 'succeeded' \
                 ELSE b.amount IS DISTINCT FROM -r.amount OR b.charge_id IS DISTINCT FROM r.charge_id END",
    },
    Rule {
        name: "the balance is the sum of captures less refunds and disputes, by account and currency",
        statement: "SELECT format('%s %s', account_id, currency) AS broken FROM ( \
                 SELECT account_id, currency, amount FROM balance_transactions \
                 UNION ALL SELECT account_id, currency, amount_refunded - amount_captured FROM charges \
                 UNION ALL SELECT account_id, currency, amount FROM disputes \
                     WHERE status IN ('needs_response', 'under_review', 'lost')) AS both_sides \
             GROUP BY account_id, currency HAVING sum(amount) <> 0",
    },
    Rule {
        name: "a used token was used by one charge or customer",
        statement: "SELECT t.id::text AS broken FROM tokens t JOIN ( \
                 SELECT account_id, payment_method_id, \
                     count(*) FILTER (WHERE customer_id IS NULL AND payment_intent_id IS NULL) AS times_alone \
                 FROM charges GROUP BY account_id, payment_method_id) AS used \
               ON (used.account_id, used.payment_method_id) = (t.account_id, t.payment_method_id) \
             WHERE t.used_at IS NULL OR used.times_alone > 1",
    },
    Rule {
        name: "a payment method that no customer has owned paid once",
        // A charge of a customer says that the method was the customer's then.
        statement: "SELECT m.id::text AS broken FROM payment_methods m \
             JOIN charges c ON (c.account_id, c.payment_method_id) = (m.account_id, m.id) \
             WHERE m.customer_id IS NULL AND m.detached_at IS NULL AND c.status <> 'failed' \
             GROUP BY m.account_id, m.id HAVING count(*) > 1",
    },
    Rule {
        name: "a customer's default card is kept by that customer",
        statement: "SELECT c.id::text AS broken FROM ( \
                 SELECT account_id, id, default_source_id AS method_id FROM customers \
                 UNION ALL SELECT account_id, id, default_payment_method_id FROM customers) AS c \
             JOIN payment_methods m ON (m.account_id, m.id) = (c.account_id, c.method_id) \
             WHERE m.customer_id IS DISTINCT FROM c.id",
    },
    Rule {
        name: "an intent holds or has what its charge holds or moved, and no other charge does",
        statement: "SELECT i.id::text AS broken FROM payment_intents i LEFT JOIN charges c \
               ON (c.account_id, c.payment_intent_id) = (i.account_id, i.id) AND c.status IN ('authorised', 'captured') \
             GROUP BY i.account_id, i.id \
             HAVING coalesce(sum(c.amount_captured), 0) <> i.amount_received \
                 OR count(c.id) <> CASE WHEN i.status IN ('requires_capture', 'succeeded') THEN 1 ELSE 0 END \
                 OR coalesce(bool_or(c.status <> CASE i.status WHEN 'succeeded' THEN 'captured' ELSE 'authorised' END), false) \
                 OR coalesce(bool_or(c.id <> i.latest_charge_id OR c.currency <> i.currency), false)",
    },
    Rule {
        name: "every intent has the one event of its beginning, and those of its end",
        statement: "SELECT i.id::text AS broken FROM payment_intents i LEFT JOIN events e \
               ON e.account_id = i.account_id AND e.type LIKE 'payment\\_intent.%' \
               AND e.payload -> 'data' -> 'object' ->> 'id' = 'pi_' || replace(i.id::text, '-', '') \
             GROUP BY i.account_id, i.id \
             HAVING count(e.id) FILTER (WHERE e.type = 'payment_intent.created') <> 1 \
                 OR count(e.id) FILTER (WHERE e.type = 'payment_intent.succeeded') <> CASE i.status WHEN 'succeeded' THEN 1 ELSE 0 END \
                 OR count(e.id) FILTER (WHERE e.type = 'payment_intent.canceled') <> CASE i.status WHEN 'canceled' THEN 1 ELSE 0 END",
    },
    Rule {
        name: "every refund is of the intent of its charge",
        statement: "SELECT r.id::text AS broken FROM refunds r JOIN charges c \
               ON (c.account_id, c.id) = (r.account_id, r.charge_id) \
             WHERE r.payment_intent_id IS DISTINCT FROM c.payment_intent_id",
    },
    Rule {
        name: "a failed refund gave its money back, and no other did",
        statement: "SELECT r.id::text AS broken FROM refunds r LEFT JOIN balance_transactions b \
               ON (b.account_id, b.id) = (r.account_id, r.failure_balance_transaction_id) \
             WHERE (r.status = 'failed') <> (b.id IS NOT NULL) \
                OR (b.id IS NOT NULL AND (b.amount <> r.amount OR b.refund_id <> r.id))",
    },
    Rule {
        name: "a dispute took its money, and gave it back if it was won",
        statement: "SELECT d.id::text AS broken FROM disputes d LEFT JOIN balance_transactions b \
               ON (b.account_id, b.dispute_id) = (d.account_id, d.id) AND b.charge_id = d.charge_id \
             GROUP BY d.account_id, d.id \
             HAVING coalesce(sum(b.amount), 0) <> CASE WHEN d.status IN ('needs_response', 'under_review', 'lost') \
                 THEN -d.amount ELSE 0 END",
    },
    Rule {
        name: "every dispute and every failed refund has its events",
        statement: "WITH told AS (SELECT account_id, type, payload -> 'data' -> 'object' ->> 'id' AS id FROM events \
                 WHERE type IN ('charge.dispute.created', 'charge.dispute.closed', 'refund.failed')), \
             due AS (SELECT account_id, 'charge.dispute.created' AS type, 'dp_' || replace(id::text, '-', '') AS id FROM disputes \
                 UNION ALL SELECT account_id, 'charge.dispute.closed', 'dp_' || replace(id::text, '-', '') FROM disputes \
                     WHERE status IN ('won', 'lost', 'warning_closed') \
                 UNION ALL SELECT account_id, 'refund.failed', 're_' || replace(id::text, '-', '') FROM refunds \
                     WHERE status = 'failed') \
             SELECT format('%s %s', type, id) AS broken FROM ( \
                 SELECT * FROM ((TABLE told EXCEPT ALL TABLE due) UNION ALL (TABLE due EXCEPT ALL TABLE told)) AS x) AS y",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_reads_some_of_the_tables() {
        let counts: BTreeMap<&str, i64> = TABLES.into_iter().map(|table| (table, 1)).collect();
        for rule in RULES {
            assert!(rule.rows(&counts) > 0, "{}", rule.name);
        }
        let refunds =
            RULES.iter().find(|rule| rule.name == "every refund is of the intent of its charge").unwrap();
        assert_eq!(refunds.rows(&counts), 2);
    }
}
