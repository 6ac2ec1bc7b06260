CREATE TABLE vouchers (
    account_id uuid NOT NULL REFERENCES accounts (id),
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    currency text NOT NULL,
    created_at timestamptz NOT NULL,
    redeemed_at timestamptz,
    PRIMARY KEY (account_id, id)
);
COMMENT ON TABLE vouchers IS 'A value that can be redeemed once.';
COMMENT ON COLUMN vouchers.request_id IS 'The request that made it.';
