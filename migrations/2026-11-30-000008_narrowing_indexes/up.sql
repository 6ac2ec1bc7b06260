-- An index leads with what narrows the search most, and has the account behind it. Led by the account, it would look as good
-- as the primary key for finding one row by its id while the table is small, and a prepared statement would go on reading
-- it from end to end when the table has grown. Only primary keys lead with the account, what is due to an endpoint, and the
-- sum, which is over all that an account has.

-- Every request looks its key up by the hash, before it knows the account.
DROP INDEX api_keys_one_that_works, api_keys_secret_hash;
CREATE UNIQUE INDEX api_keys_that_work ON api_keys (secret_hash, account_id) WHERE revoked_at IS NULL;
COMMENT ON INDEX api_keys_that_work IS 'A key works once in an account, so that revoking it ends it.';

DROP INDEX payment_methods_customer, customers_email, payment_intents_customer;
CREATE INDEX payment_methods_customer ON payment_methods (customer_id, account_id, id) WHERE customer_id IS NOT NULL;
CREATE INDEX customers_email ON customers (email, account_id, id) WHERE email IS NOT NULL;
CREATE INDEX payment_intents_customer ON payment_intents (customer_id, account_id, id) WHERE customer_id IS NOT NULL;

DROP INDEX charges_one_for_intent, charges_payment_intent, charges_customer;
CREATE UNIQUE INDEX charges_one_for_intent ON charges (payment_intent_id, account_id)
    WHERE payment_intent_id IS NOT NULL AND status IN ('authorised', 'captured');
COMMENT ON INDEX charges_one_for_intent IS 'An intent is kept by one charge at most: the others failed, or were let go.';
CREATE INDEX charges_payment_intent ON charges (payment_intent_id, account_id, id) WHERE payment_intent_id IS NOT NULL;
CREATE INDEX charges_customer ON charges (customer_id, account_id, id) WHERE customer_id IS NOT NULL;

DROP INDEX refunds_charge, refunds_payment_intent;
CREATE INDEX refunds_charge ON refunds (charge_id, account_id, id);
CREATE INDEX refunds_payment_intent ON refunds (payment_intent_id, account_id, id) WHERE payment_intent_id IS NOT NULL;

DROP INDEX disputes_one_per_charge, disputes_payment_intent;
CREATE UNIQUE INDEX disputes_one_per_charge ON disputes (charge_id, account_id);
CREATE INDEX disputes_payment_intent ON disputes (payment_intent_id, account_id, id) WHERE payment_intent_id IS NOT NULL;

-- Two indexes say what four said: a charge is captured once, disputed once and won back once, and a refund moves money once
-- and fails once, whatever else goes wrong.
DROP INDEX balance_transactions_one_per_charge, balance_transactions_one_per_dispute,
    balance_transactions_one_per_refund, balance_transactions_one_per_failure, balance_transactions_kind;
CREATE UNIQUE INDEX balance_transactions_once_per_charge ON balance_transactions (charge_id, account_id, kind) WHERE refund_id IS NULL;
CREATE UNIQUE INDEX balance_transactions_once_per_refund ON balance_transactions (refund_id, account_id, kind) WHERE refund_id IS NOT NULL;
CREATE INDEX balance_transactions_kind ON balance_transactions (kind, account_id, id);

DROP INDEX events_type;
CREATE INDEX events_type ON events (type, account_id, id);

-- For lists of events by whether they reached everyone; most have, and are not in it.
CREATE INDEX webhook_deliveries_undelivered ON webhook_deliveries (event_id, account_id) WHERE status IN ('pending', 'failed');
