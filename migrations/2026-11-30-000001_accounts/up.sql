-- Who may call, and by which key. The account's id stands first in every other primary, unique and foreign key,
-- so that no row can point into another account and the tables could be distributed by account. The tables that
-- grow with each request do not reference accounts: the id comes from an API key's row, which does, and checking
-- it again would make all requests of an account lock one row.

CREATE TABLE accounts (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (name <> ''),
    created_at timestamptz NOT NULL
);
COMMENT ON TABLE accounts IS 'Whoever owns customers, charges and keys; two accounts never see each other.';

CREATE TABLE api_keys (
    account_id uuid NOT NULL REFERENCES accounts (id),
    id uuid NOT NULL,
    secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
    hint text NOT NULL,
    created_at timestamptz NOT NULL,
    revoked_at timestamptz,
    PRIMARY KEY (account_id, id)
);
COMMENT ON TABLE api_keys IS 'The keys of an account. The key itself is shown once, when it is made, and never stored.';
COMMENT ON COLUMN api_keys.secret_hash IS 'SHA-256 of the whole key; a key has 192 random bits, so no slow hash is needed.';
COMMENT ON COLUMN api_keys.hint IS 'The beginning and the last four characters, to tell keys apart.';

-- A key works once, so that revoking it ends it.
CREATE UNIQUE INDEX api_keys_one_that_works ON api_keys (account_id, secret_hash) WHERE revoked_at IS NULL;
-- Every request looks a key up by its hash before it knows the account.
CREATE INDEX api_keys_secret_hash ON api_keys (secret_hash);
