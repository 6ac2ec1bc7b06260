-- Every object keeps the request_id of the request that made it.

CREATE TABLE payment_methods (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    customer_id uuid,
    test_card text NOT NULL,
    expiry_month smallint NOT NULL CHECK (expiry_month BETWEEN 1 AND 12),
    expiry_year smallint NOT NULL,
    cvc_given boolean NOT NULL,
    billing_details jsonb NOT NULL,
    metadata jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    detached_at timestamptz,
    PRIMARY KEY (account_id, id),
    CONSTRAINT payment_methods_kept_or_detached CHECK (customer_id IS NULL OR detached_at IS NULL)
);
COMMENT ON TABLE payment_methods IS 'Cards, as pm_ and, where the older API calls them sources, as card_. A row knows which test card it is, and no card number.';
COMMENT ON COLUMN payment_methods.test_card IS 'The name of the test card, which stands for its number, brand and behaviour.';
COMMENT ON COLUMN payment_methods.cvc_given IS 'Whether a security code came with the card; the code itself is not kept.';
COMMENT ON COLUMN payment_methods.billing_details IS 'Name, address, e-mail and phone of the holder, as typed with the card.';
COMMENT ON COLUMN payment_methods.detached_at IS 'When a customer gave it up; it can never be used again.';

CREATE TABLE customers (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    default_source_id uuid,
    default_payment_method_id uuid,
    address jsonb,
    description text,
    email text,
    name text,
    phone text,
    preferred_locales jsonb NOT NULL,
    shipping jsonb,
    metadata jsonb NOT NULL,
    created_at timestamptz NOT NULL,
    deleted_at timestamptz,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id, default_source_id) REFERENCES payment_methods (account_id, id),
    FOREIGN KEY (account_id, default_payment_method_id) REFERENCES payment_methods (account_id, id)
);
COMMENT ON COLUMN customers.default_payment_method_id IS 'The default of invoice_settings.';
COMMENT ON COLUMN customers.deleted_at IS 'A deleted customer stays, so that its charges keep their customer; it can no longer be changed or charged.';

ALTER TABLE payment_methods
    ADD CONSTRAINT payment_methods_customer_fkey
    FOREIGN KEY (account_id, customer_id) REFERENCES customers (account_id, id);

CREATE INDEX payment_methods_customer ON payment_methods (account_id, customer_id, id) WHERE customer_id IS NOT NULL;
CREATE INDEX customers_email ON customers (account_id, email, id) WHERE email IS NOT NULL;

CREATE TABLE tokens (
    account_id uuid NOT NULL,
    id uuid NOT NULL,
    request_id uuid NOT NULL,
    payment_method_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    used_at timestamptz,
    PRIMARY KEY (account_id, id),
    FOREIGN KEY (account_id, payment_method_id) REFERENCES payment_methods (account_id, id)
);
COMMENT ON TABLE tokens IS 'A card under a name that can be used once.';
