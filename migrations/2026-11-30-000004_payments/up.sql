-- The promise, the attempts to keep it, and the way back. The rules of money hold here a second time: whatever a
-- statement tries, refunded <= captured <= amount.

CREATE TABLE payment_intents (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    status text NOT NULL CHECK (status IN ('requires_payment_method', 'requires_confirmation', 'requires_action',
        'requires_capture', 'succeeded', 'canceled')),
    amount bigint NOT NULL CHECK (amount > 0),
    amount_received bigint NOT NULL CHECK (amount_received BETWEEN 0 AND amount),
    currency text NOT NULL CHECK (currency ~ '^[a-z]{3}$'),
    customer_id uuid,
    payment_method_id uuid,
    latest_charge_id uuid,
    capture_method text NOT NULL CHECK (capture_method IN ('automatic', 'automatic_async', 'manual')),
    confirmation_method text NOT NULL CHECK (confirmation_method IN ('automatic', 'manual')),
    client_secret text NOT NULL,
    setup_future_usage text CHECK (setup_future_usage IN ('off_session', 'on_session')),
    automatic_payment_methods jsonb,
    payment_method_options jsonb NOT NULL,
    next_action jsonb,
    last_payment_error jsonb,
    description text,
    metadata jsonb NOT NULL,
    receipt_email text,
    shipping jsonb,
    statement_descriptor text,
    statement_descriptor_suffix text,
    cancellation_reason text,
    canceled_at timestamptz,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id),
    FOREIGN KEY (account_id, payment_method_id) REFERENCES payment_methods (account_id, id),
    CONSTRAINT payment_intents_received_if_succeeded CHECK ((status = 'succeeded') = (amount_received > 0)),
    CONSTRAINT payment_intents_charge_if_money CHECK
        (status NOT IN ('requires_capture', 'succeeded') OR latest_charge_id IS NOT NULL),
    CONSTRAINT payment_intents_action_if_required CHECK ((status = 'requires_action') = (next_action IS NOT NULL)),
    CONSTRAINT payment_intents_reason_if_canceled CHECK ((status = 'canceled') = (canceled_at IS NOT NULL))
);
COMMENT ON TABLE payment_intents IS 'The promise to pay an amount; its charges are the attempts.';
COMMENT ON COLUMN payment_intents.client_secret IS 'The random end of the client secret, by which a payer''s browser may know this intent.';
COMMENT ON COLUMN payment_intents.last_payment_error IS 'Why the latest attempt failed, as it was told; unset when one succeeds.';

CREATE INDEX payment_intents_customer ON payment_intents (account_id, customer_id, id) WHERE customer_id IS NOT NULL;

CREATE TABLE charges (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    status text NOT NULL CHECK (status IN ('authorised', 'captured', 'released', 'failed')),
    amount bigint NOT NULL CHECK (amount > 0),
    amount_captured bigint NOT NULL CHECK (amount_captured BETWEEN 0 AND amount),
    amount_refunded bigint NOT NULL CHECK (amount_refunded BETWEEN 0 AND amount_captured),
    currency text NOT NULL CHECK (currency ~ '^[a-z]{3}$'),
    customer_id uuid,
    payment_intent_id uuid,
    payment_method_id uuid NOT NULL,
    balance_transaction_id uuid,
    decline_code text,
    disputed boolean NOT NULL,
    card jsonb NOT NULL,
    description text,
    metadata jsonb NOT NULL,
    receipt_email text,
    shipping jsonb,
    statement_descriptor text,
    statement_descriptor_suffix text,
    user_report text CHECK (user_report IN ('fraudulent', 'safe')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id),
    FOREIGN KEY (account_id, payment_intent_id) REFERENCES payment_intents (account_id, id),
    FOREIGN KEY (account_id, payment_method_id) REFERENCES payment_methods (account_id, id),
    CONSTRAINT charges_captured_if_money_moved CHECK ((status = 'captured') = (amount_captured > 0)),
    CONSTRAINT charges_ledger_if_captured CHECK ((status = 'captured') = (balance_transaction_id IS NOT NULL)),
    CONSTRAINT charges_declined_if_failed CHECK ((status = 'failed') = (decline_code IS NOT NULL))
);
COMMENT ON TABLE charges IS 'One attempt to move money. Amounts are in the minor unit of the currency.';
COMMENT ON COLUMN charges.amount_refunded IS 'What refunds moved back. The wire also counts the part of a hold that a partial capture released.';
COMMENT ON COLUMN charges.card IS 'The card as it was when it was charged.';
COMMENT ON COLUMN charges.user_report IS 'What the account thinks of the charge: fraudulent or safe.';

COMMENT ON COLUMN charges.status IS 'A hold is authorised, then captured or released.';

-- An intent is kept by one charge at most, whatever else goes wrong: the others failed, or were let go.
CREATE UNIQUE INDEX charges_one_for_intent ON charges (account_id, payment_intent_id)
    WHERE payment_intent_id IS NOT NULL AND status IN ('authorised', 'captured');
CREATE INDEX charges_payment_intent ON charges (account_id, payment_intent_id, id) WHERE payment_intent_id IS NOT NULL;
-- For the sweeper that lets holds go.
CREATE INDEX charges_held ON charges (created_at) WHERE status = 'authorised';
ALTER TABLE payment_intents
    ADD CONSTRAINT payment_intents_latest_charge_fkey
    FOREIGN KEY (account_id, latest_charge_id) REFERENCES charges (account_id, id);

CREATE INDEX charges_customer ON charges (account_id, customer_id, id) WHERE customer_id IS NOT NULL;

CREATE TABLE refunds (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    charge_id uuid NOT NULL,
    payment_intent_id uuid,
    status text NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed')),
    amount bigint NOT NULL CHECK (amount > 0),
    currency text NOT NULL,
    customer_id uuid,
    payment_method_id uuid NOT NULL,
    balance_transaction_id uuid NOT NULL,
    failure_balance_transaction_id uuid,
    reason text CHECK (reason IN ('duplicate', 'fraudulent', 'requested_by_customer')),
    metadata jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id, charge_id) REFERENCES charges (account_id, id),
    FOREIGN KEY (account_id, payment_intent_id) REFERENCES payment_intents (account_id, id),
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id),
    FOREIGN KEY (account_id, payment_method_id) REFERENCES payment_methods (account_id, id)
);
COMMENT ON TABLE refunds IS 'Money of a captured charge on its way back.';
COMMENT ON COLUMN refunds.customer_id IS 'The customer of the charge when it was refunded.';

CREATE INDEX refunds_charge ON refunds (account_id, charge_id, id);
CREATE INDEX refunds_payment_intent ON refunds (account_id, payment_intent_id, id) WHERE payment_intent_id IS NOT NULL;

CREATE TABLE balance_transactions (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('charge', 'refund', 'refund_failure', 'dispute', 'dispute_reversal')),
    charge_id uuid NOT NULL,
    refund_id uuid,
    amount bigint NOT NULL,
    currency text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id, charge_id) REFERENCES charges (account_id, id),
    FOREIGN KEY (account_id, refund_id) REFERENCES refunds (account_id, id),
    CONSTRAINT balance_transactions_sign
        CHECK ((kind IN ('charge', 'refund_failure', 'dispute_reversal')) = (amount > 0)),
    CONSTRAINT balance_transactions_source
        CHECK ((kind IN ('refund', 'refund_failure')) = (refund_id IS NOT NULL))
);
COMMENT ON TABLE balance_transactions IS 'The ledger. Rows are only ever added; the balance is their sum.';
COMMENT ON COLUMN balance_transactions.charge_id IS 'The charge whose money moved, for a refund or dispute too.';

ALTER TABLE charges
    ADD CONSTRAINT charges_balance_transaction_fkey
    FOREIGN KEY (account_id, balance_transaction_id) REFERENCES balance_transactions (account_id, id);
ALTER TABLE refunds
    ADD CONSTRAINT refunds_balance_transaction_fkey
    FOREIGN KEY (account_id, balance_transaction_id) REFERENCES balance_transactions (account_id, id);

-- A charge is captured once and a refund moves money once, whatever else goes wrong.
CREATE UNIQUE INDEX balance_transactions_one_per_charge ON balance_transactions (account_id, charge_id) WHERE kind = 'charge';
CREATE UNIQUE INDEX balance_transactions_one_per_refund ON balance_transactions (account_id, refund_id) WHERE kind = 'refund';
CREATE UNIQUE INDEX balance_transactions_one_per_failure ON balance_transactions (account_id, refund_id) WHERE kind = 'refund_failure';
CREATE UNIQUE INDEX balance_transactions_one_per_dispute ON balance_transactions (account_id, charge_id, kind) WHERE kind IN ('dispute', 'dispute_reversal');
-- The balance is summed over this index alone.
CREATE INDEX balance_transactions_sum ON balance_transactions (account_id, currency, id) INCLUDE (amount);
CREATE INDEX balance_transactions_kind ON balance_transactions (account_id, kind, id);
