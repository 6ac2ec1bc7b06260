DROP INDEX webhook_deliveries_undelivered;

DROP INDEX events_type;
CREATE INDEX events_type ON events (account_id, type, id);

DROP INDEX balance_transactions_once_per_charge, balance_transactions_once_per_refund, balance_transactions_kind;
CREATE UNIQUE INDEX balance_transactions_one_per_charge ON balance_transactions (account_id, charge_id) WHERE kind = 'charge';
CREATE UNIQUE INDEX balance_transactions_one_per_refund ON balance_transactions (account_id, refund_id) WHERE kind = 'refund';
CREATE UNIQUE INDEX balance_transactions_one_per_failure ON balance_transactions (account_id, refund_id) WHERE kind = 'refund_failure';
CREATE UNIQUE INDEX balance_transactions_one_per_dispute ON balance_transactions (account_id, charge_id, kind)
    WHERE kind IN ('dispute', 'dispute_reversal');
CREATE INDEX balance_transactions_kind ON balance_transactions (account_id, kind, id);

DROP INDEX disputes_one_per_charge, disputes_payment_intent;
CREATE UNIQUE INDEX disputes_one_per_charge ON disputes (account_id, charge_id);
CREATE INDEX disputes_payment_intent ON disputes (account_id, payment_intent_id, id) WHERE payment_intent_id IS NOT NULL;

DROP INDEX refunds_charge, refunds_payment_intent;
CREATE INDEX refunds_charge ON refunds (account_id, charge_id, id);
CREATE INDEX refunds_payment_intent ON refunds (account_id, payment_intent_id, id) WHERE payment_intent_id IS NOT NULL;

DROP INDEX charges_one_for_intent, charges_payment_intent, charges_customer;
CREATE UNIQUE INDEX charges_one_for_intent ON charges (account_id, payment_intent_id)
    WHERE payment_intent_id IS NOT NULL AND status IN ('authorised', 'captured');
CREATE INDEX charges_payment_intent ON charges (account_id, payment_intent_id, id) WHERE payment_intent_id IS NOT NULL;
CREATE INDEX charges_customer ON charges (account_id, customer_id, id) WHERE customer_id IS NOT NULL;

DROP INDEX payment_methods_customer, customers_email, payment_intents_customer;
CREATE INDEX payment_methods_customer ON payment_methods (account_id, customer_id, id) WHERE customer_id IS NOT NULL;
CREATE INDEX customers_email ON customers (account_id, email, id) WHERE email IS NOT NULL;
CREATE INDEX payment_intents_customer ON payment_intents (account_id, customer_id, id) WHERE customer_id IS NOT NULL;

DROP INDEX api_keys_that_work;
CREATE UNIQUE INDEX api_keys_one_that_works ON api_keys (account_id, secret_hash) WHERE revoked_at IS NULL;
CREATE INDEX api_keys_secret_hash ON api_keys (secret_hash);
