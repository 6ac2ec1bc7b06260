-- Disputes, and what the simulated card network still has to tell.

CREATE TABLE disputes (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    charge_id uuid NOT NULL,
    payment_intent_id uuid,
    status text NOT NULL CHECK (status IN ('warning_needs_response', 'warning_under_review', 'warning_closed',
        'needs_response', 'under_review', 'won', 'lost')),
    amount bigint NOT NULL CHECK (amount > 0),
    currency text NOT NULL,
    reason text NOT NULL,
    evidence jsonb NOT NULL,
    submissions integer NOT NULL,
    metadata jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id, charge_id) REFERENCES charges (account_id, id)
);
COMMENT ON TABLE disputes IS 'A cardholder who says that a charge is wrong.';
COMMENT ON COLUMN disputes.submissions IS 'How often evidence was submitted to the issuer.';

CREATE UNIQUE INDEX disputes_one_per_charge ON disputes (account_id, charge_id);
CREATE INDEX disputes_payment_intent ON disputes (account_id, payment_intent_id, id) WHERE payment_intent_id IS NOT NULL;

CREATE TABLE network_notifications (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    body text NOT NULL,
    due_at timestamptz NOT NULL,
    attempts integer NOT NULL,
    delivered_at timestamptz,
    PRIMARY KEY (account_id, id)
);
COMMENT ON TABLE network_notifications IS 'What the simulated network will notify this service of. A real network would keep this itself.';
COMMENT ON COLUMN network_notifications.body IS 'The JSON that it will send, as it will send it.';

CREATE INDEX network_notifications_due ON network_notifications (due_at) WHERE delivered_at IS NULL;
