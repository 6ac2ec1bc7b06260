-- The outbox: every effect writes its events in its own transaction, and a replay writes none.

CREATE TABLE events (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    idempotency_key text,
    -- Sorted by its bytes, whatever the database sorts by, so that the index below also finds what begins alike.
    type text COLLATE "C" NOT NULL,
    payload json NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (account_id, id)
);
COMMENT ON COLUMN events.idempotency_key IS 'The key of the request that caused it, if it had one.';
COMMENT ON COLUMN events.type IS 'As in charge.succeeded.';
COMMENT ON COLUMN events.payload IS 'The event as it is sent, with its object as it was right after the effect; json and not jsonb, which would reorder it.';

CREATE INDEX events_type ON events (account_id, type, id);
