-- The law: a row exists here if and only if the response it holds was committed together with its effect. It is
-- inserted complete, as the last statement before COMMIT, so every column is NOT NULL and nothing is updated.
-- No foreign key points here, so that sweeping is never blocked; effects carry the same request_id instead.

CREATE TABLE idempotency_records (
    account_id uuid NOT NULL,
    source text NOT NULL CHECK (source IN ('api', 'network')),
    key text NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    fingerprint_version smallint NOT NULL,
    fingerprint bytea NOT NULL CHECK (octet_length(fingerprint) = 36),
    request_id uuid NOT NULL,
    status smallint NOT NULL CHECK (status BETWEEN 200 AND 599),
    content_type text NOT NULL,
    location text NOT NULL,
    sealed boolean NOT NULL,
    body bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL CHECK (expires_at > created_at),
    PRIMARY KEY (account_id, source, key)
);
COMMENT ON TABLE idempotency_records IS 'The remembered answers: one row for each key whose request was committed.';
COMMENT ON COLUMN idempotency_records.source IS 'Who chose the key: keys of the API and event ids of the card network never meet.';
COMMENT ON COLUMN idempotency_records.fingerprint IS 'Four bytes that mark the server''s secret, and HMAC-SHA-256 of the request under it.';
COMMENT ON COLUMN idempotency_records.fingerprint_version IS 'The form of the request that was hashed; a record of another form is replayed without comparison.';
COMMENT ON COLUMN idempotency_records.location IS 'The header Location, or the empty text.';
COMMENT ON COLUMN idempotency_records.sealed IS 'Whether the body is encrypted, because it holds a secret that is shown once.';
COMMENT ON COLUMN idempotency_records.body IS 'The bytes that were sent; never jsonb, which would not give them back.';

-- For the sweeper.
CREATE INDEX idempotency_records_expires_at ON idempotency_records (expires_at);
