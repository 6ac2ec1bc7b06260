-- Views for people who look with psql: ids and JSON as in the API, joined with the request that made each row. They cannot be
-- written to, since each is a join.
CREATE SCHEMA readable;
COMMENT ON SCHEMA readable IS 'Ids and JSON as in the API, for people who look with psql.';

CREATE FUNCTION readable.id(prefix text, id uuid) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN prefix || '_' || replace(id::text, '-', '');
COMMENT ON FUNCTION readable.id IS 'An id as the API shows it: ch_0199…';

CREATE VIEW readable.requests AS
    SELECT readable.id('acct', r.account_id) AS account, readable.id('req', r.request_id) AS request, r.source, r.key,
        r.status, r.created_at, r.expires_at, nullif(r.location, '') AS location,
        -- A sealed answer holds a secret, and is encrypted.
        CASE WHEN NOT r.sealed AND r.content_type LIKE 'application/json%' THEN convert_from(r.body, 'UTF8')::json END AS answer
    FROM idempotency_records r JOIN accounts a ON a.id = r.account_id;
COMMENT ON VIEW readable.requests IS 'The remembered requests: key, status and answer.';

CREATE VIEW readable.customers AS
    SELECT readable.id('acct', c.account_id) AS account, readable.id('cus', c.id) AS id, c.name, c.email, c.description, c.metadata,
        readable.id('pm', c.default_payment_method_id) AS default_payment_method,
        c.created_at, c.deleted_at, readable.id('req', c.request_id) AS request, r.key, r.status AS answered
    FROM customers c LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (c.account_id, c.request_id);
COMMENT ON VIEW readable.customers IS 'Customers, deleted ones too.';

CREATE VIEW readable.payment_methods AS
    SELECT readable.id('acct', m.account_id) AS account, readable.id('pm', m.id) AS id,
        readable.id('cus', m.customer_id) AS customer, m.test_card, m.expiry_month, m.expiry_year, m.metadata,
        m.created_at, m.detached_at, readable.id('req', m.request_id) AS request, r.key, r.status AS answered
    FROM payment_methods m LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (m.account_id, m.request_id);
COMMENT ON VIEW readable.payment_methods IS 'Payment methods, by the name of their test card.';

CREATE VIEW readable.payment_intents AS
    SELECT readable.id('acct', i.account_id) AS account, readable.id('pi', i.id) AS id, i.status, i.amount, i.amount_received,
        i.currency, readable.id('cus', i.customer_id) AS customer, readable.id('ch', i.latest_charge_id) AS latest_charge,
        i.last_payment_error, i.metadata, i.created_at, i.canceled_at,
        readable.id('req', i.request_id) AS request, r.key, r.status AS answered
    FROM payment_intents i LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (i.account_id, i.request_id);
COMMENT ON VIEW readable.payment_intents IS 'Payment intents.';

CREATE VIEW readable.charges AS
    SELECT readable.id('acct', c.account_id) AS account, readable.id('ch', c.id) AS id, c.status, c.amount, c.amount_captured,
        c.amount_refunded, c.currency, readable.id('cus', c.customer_id) AS customer,
        readable.id('pi', c.payment_intent_id) AS payment_intent, readable.id('pm', c.payment_method_id) AS payment_method,
        readable.id('txn', c.balance_transaction_id) AS balance_transaction, c.decline_code, c.disputed, c.metadata, c.created_at,
        readable.id('req', c.request_id) AS request, r.key, r.status AS answered
    FROM charges c LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (c.account_id, c.request_id);
COMMENT ON VIEW readable.charges IS 'Charges.';

CREATE VIEW readable.refunds AS
    SELECT readable.id('acct', f.account_id) AS account, readable.id('re', f.id) AS id, f.status, f.amount, f.currency,
        readable.id('ch', f.charge_id) AS charge, readable.id('pi', f.payment_intent_id) AS payment_intent,
        readable.id('txn', f.balance_transaction_id) AS balance_transaction, f.reason, f.metadata, f.created_at,
        readable.id('req', f.request_id) AS request, r.key, r.status AS answered
    FROM refunds f LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (f.account_id, f.request_id);
COMMENT ON VIEW readable.refunds IS 'Refunds.';

CREATE VIEW readable.disputes AS
    SELECT readable.id('acct', d.account_id) AS account, readable.id('dp', d.id) AS id, d.status, d.amount, d.currency,
        readable.id('ch', d.charge_id) AS charge, d.reason, d.evidence, d.created_at,
        readable.id('req', d.request_id) AS request, r.key, r.status AS answered
    FROM disputes d LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (d.account_id, d.request_id);
COMMENT ON VIEW readable.disputes IS 'Disputes; the key is the id of the notification.';

CREATE VIEW readable.balance_transactions AS
    SELECT readable.id('acct', b.account_id) AS account, readable.id('txn', b.id) AS id, b.kind, b.amount, b.currency,
        coalesce(readable.id('re', b.refund_id), readable.id('dp', b.dispute_id), readable.id('ch', b.charge_id)) AS source,
        readable.id('ch', b.charge_id) AS charge, b.created_at,
        readable.id('req', b.request_id) AS request, r.key, r.status AS answered
    FROM balance_transactions b LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (b.account_id, b.request_id);
COMMENT ON VIEW readable.balance_transactions IS 'The ledger.';

CREATE VIEW readable.events AS
    SELECT readable.id('acct', e.account_id) AS account, readable.id('evt', e.id) AS id, e.type,
        e.payload -> 'data' -> 'object' ->> 'id' AS object, e.payload, e.created_at,
        readable.id('req', e.request_id) AS request, e.idempotency_key AS key, r.status AS answered
    FROM events e LEFT JOIN idempotency_records r ON (r.account_id, r.request_id) = (e.account_id, e.request_id);
COMMENT ON VIEW readable.events IS 'Events, with the object as it was right after the effect.';

CREATE VIEW readable.webhook_deliveries AS
    SELECT readable.id('acct', d.account_id) AS account, readable.id('evt', d.event_id) AS event, e.type,
        readable.id('we', d.endpoint_id) AS endpoint, w.url, d.status, d.attempts, d.next_attempt_at
    FROM webhook_deliveries d
    JOIN events e ON (e.account_id, e.id) = (d.account_id, d.event_id)
    JOIN webhook_endpoints w ON (w.account_id, w.id) = (d.account_id, d.endpoint_id);
COMMENT ON VIEW readable.webhook_deliveries IS 'What is sent to whom, and how far it is.';
