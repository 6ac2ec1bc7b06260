-- Webhooks out. A delivery is written in the transaction of the effect whose event it delivers, so none is lost; it is
-- sent by a worker, and recorded after it was sent, so one may be sent twice, with the same event id.

CREATE TABLE webhook_endpoints (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    url text NOT NULL,
    description text,
    enabled_events jsonb NOT NULL,
    api_version text,
    metadata jsonb NOT NULL,
    disabled boolean NOT NULL,
    sealed_secret bytea NOT NULL,
    previous_sealed_secret bytea,
    previous_secret_expires_at timestamptz,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    PRIMARY KEY (account_id, id),
    CONSTRAINT webhook_endpoints_previous_secret
        CHECK ((previous_sealed_secret IS NULL) = (previous_secret_expires_at IS NULL))
);
COMMENT ON TABLE webhook_endpoints IS 'Where an account wants its events sent.';
COMMENT ON COLUMN webhook_endpoints.enabled_events IS 'Types of events, or * for all of them.';
COMMENT ON COLUMN webhook_endpoints.sealed_secret IS 'The secret under which deliveries are signed, encrypted under the server''s secret.';
COMMENT ON COLUMN webhook_endpoints.previous_sealed_secret IS 'The secret before it was rolled; deliveries are signed with both until it expires.';

CREATE TABLE webhook_deliveries (
    account_id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'delivered', 'failed', 'canceled')),
    attempts integer NOT NULL,
    next_attempt_at timestamptz NOT NULL,
    leased_until timestamptz,
    PRIMARY KEY (account_id, event_id, endpoint_id),
    FOREIGN KEY (account_id, event_id) REFERENCES events (account_id, id),
    FOREIGN KEY (account_id, endpoint_id) REFERENCES webhook_endpoints (account_id, id)
);
COMMENT ON TABLE webhook_deliveries IS 'An event on its way to an endpoint.';
COMMENT ON COLUMN webhook_deliveries.attempts IS 'How often it was sent, or was about to be when the worker died.';
COMMENT ON COLUMN webhook_deliveries.leased_until IS 'Until then a worker is sending it; after that, another may.';

-- What is due, by endpoint, so that one with many failures does not stand before the others.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (account_id, endpoint_id, next_attempt_at) WHERE status = 'pending';

CREATE TABLE webhook_attempts (
    account_id uuid NOT NULL,
    event_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    id uuid NOT NULL,
    status_code smallint,
    error text,
    latency_ms integer NOT NULL,
    answer text NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, event_id, endpoint_id, id),
    FOREIGN KEY (account_id, event_id, endpoint_id) REFERENCES webhook_deliveries (account_id, event_id, endpoint_id)
);
COMMENT ON COLUMN webhook_attempts.status_code IS 'What the endpoint answered, if it did.';
COMMENT ON COLUMN webhook_attempts.answer IS 'The start of what it answered.';
