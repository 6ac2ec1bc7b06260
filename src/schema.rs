// @generated automatically by Diesel CLI.

diesel::table! {
    /// Whoever owns customers, charges and keys; two accounts never see each other.
    accounts (id) {
        id -> Uuid,
        name -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    /// The keys of an account. The key itself is shown once, when it is made, and never stored.
    api_keys (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        /// SHA-256 of the whole key; a key has 192 random bits, so no slow hash is needed.
        secret_hash -> Bytea,
        /// The beginning and the last four characters, to tell keys apart.
        hint -> Text,
        created_at -> Timestamptz,
        revoked_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    /// The ledger. Rows are only ever added; the balance is their sum.
    balance_transactions (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        kind -> Text,
        /// The charge whose money moved, for a refund or dispute too.
        charge_id -> Uuid,
        refund_id -> Nullable<Uuid>,
        amount -> Int8,
        currency -> Text,
        created_at -> Timestamptz,
        dispute_id -> Nullable<Uuid>,
    }
}

diesel::table! {
    /// One attempt to move money. Amounts are in the minor unit of the currency.
    charges (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        /// A hold is authorised, then captured or released.
        status -> Text,
        amount -> Int8,
        amount_captured -> Int8,
        /// What refunds moved back. The wire also counts the part of a hold that a partial capture released.
        amount_refunded -> Int8,
        currency -> Text,
        customer_id -> Nullable<Uuid>,
        payment_intent_id -> Nullable<Uuid>,
        payment_method_id -> Uuid,
        balance_transaction_id -> Nullable<Uuid>,
        decline_code -> Nullable<Text>,
        disputed -> Bool,
        /// The card as it was when it was charged.
        card -> Jsonb,
        description -> Nullable<Text>,
        metadata -> Jsonb,
        receipt_email -> Nullable<Text>,
        shipping -> Nullable<Jsonb>,
        statement_descriptor -> Nullable<Text>,
        statement_descriptor_suffix -> Nullable<Text>,
        /// What the account thinks of the charge: fraudulent or safe.
        user_report -> Nullable<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    customers (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        default_source_id -> Nullable<Uuid>,
        /// The default of invoice_settings.
        default_payment_method_id -> Nullable<Uuid>,
        address -> Nullable<Jsonb>,
        description -> Nullable<Text>,
        email -> Nullable<Text>,
        name -> Nullable<Text>,
        phone -> Nullable<Text>,
        preferred_locales -> Jsonb,
        shipping -> Nullable<Jsonb>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        /// A deleted customer stays, so that its charges keep their customer; it can no longer be changed or charged.
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    /// A cardholder who says that a charge is wrong.
    disputes (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        charge_id -> Uuid,
        payment_intent_id -> Nullable<Uuid>,
        status -> Text,
        amount -> Int8,
        currency -> Text,
        reason -> Text,
        evidence -> Jsonb,
        /// How often evidence was submitted to the issuer.
        submissions -> Int4,
        metadata -> Jsonb,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    events (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        /// The key of the request that caused it, if it had one.
        idempotency_key -> Nullable<Text>,
        /// As in charge.succeeded.
        #[sql_name = "type"]
        type_ -> Text,
        /// The event as it is sent, with its object as it was right after the effect; json and not jsonb, which would reorder it.
        payload -> Json,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    /// The remembered answers: one row for each key whose request was committed.
    idempotency_records (account_id, source, key) {
        account_id -> Uuid,
        /// Who chose the key: keys of the API and event ids of the card network never meet.
        source -> Text,
        key -> Text,
        /// The form of the request that was hashed; a record of another form is replayed without comparison.
        fingerprint_version -> Int2,
        /// HMAC-SHA-256 of the request under the server's secret.
        fingerprint -> Bytea,
        request_id -> Uuid,
        status -> Int2,
        content_type -> Text,
        /// The header Location, or the empty text.
        location -> Text,
        /// Whether the body is encrypted, because it holds a secret that is shown once.
        sealed -> Bool,
        /// The bytes that were sent; never jsonb, which would not give them back.
        body -> Bytea,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
    }
}

diesel::table! {
    /// What the simulated network will notify this service of. A real network would keep this itself.
    network_notifications (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        /// The JSON that it will send, as it will send it.
        body -> Text,
        due_at -> Timestamptz,
        attempts -> Int4,
        delivered_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    /// The promise to pay an amount; its charges are the attempts.
    payment_intents (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        status -> Text,
        amount -> Int8,
        amount_received -> Int8,
        currency -> Text,
        customer_id -> Nullable<Uuid>,
        payment_method_id -> Nullable<Uuid>,
        latest_charge_id -> Nullable<Uuid>,
        capture_method -> Text,
        confirmation_method -> Text,
        /// The random end of the client secret, by which a payer's browser may know this intent.
        client_secret -> Text,
        setup_future_usage -> Nullable<Text>,
        automatic_payment_methods -> Nullable<Jsonb>,
        payment_method_options -> Jsonb,
        next_action -> Nullable<Jsonb>,
        /// Why the latest attempt failed, as it was told; unset when one succeeds.
        last_payment_error -> Nullable<Jsonb>,
        description -> Nullable<Text>,
        metadata -> Jsonb,
        receipt_email -> Nullable<Text>,
        shipping -> Nullable<Jsonb>,
        statement_descriptor -> Nullable<Text>,
        statement_descriptor_suffix -> Nullable<Text>,
        cancellation_reason -> Nullable<Text>,
        canceled_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    /// Cards, as pm_ and, where the older API calls them sources, as card_. A row knows which test card it is, and no card number.
    payment_methods (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        customer_id -> Nullable<Uuid>,
        /// The name of the test card, which stands for its number, brand and behaviour.
        test_card -> Text,
        expiry_month -> Int2,
        expiry_year -> Int2,
        /// Whether a security code came with the card; the code itself is not kept.
        cvc_given -> Bool,
        /// Name, address, e-mail and phone of the holder, as typed with the card.
        billing_details -> Jsonb,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        /// When a customer gave it up; it can never be used again.
        detached_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    /// Money of a captured charge on its way back.
    refunds (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        charge_id -> Uuid,
        payment_intent_id -> Nullable<Uuid>,
        status -> Text,
        amount -> Int8,
        currency -> Text,
        /// The customer of the charge when it was refunded.
        customer_id -> Nullable<Uuid>,
        payment_method_id -> Uuid,
        /// The row that moved the money; none if the refund only let a hold go.
        balance_transaction_id -> Nullable<Uuid>,
        failure_balance_transaction_id -> Nullable<Uuid>,
        reason -> Nullable<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    /// A card under a name that can be used once.
    tokens (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        payment_method_id -> Uuid,
        created_at -> Timestamptz,
        used_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    webhook_attempts (account_id, event_id, endpoint_id, id) {
        account_id -> Uuid,
        event_id -> Uuid,
        endpoint_id -> Uuid,
        id -> Uuid,
        /// What the endpoint answered, if it did.
        status_code -> Nullable<Int2>,
        error -> Nullable<Text>,
        latency_ms -> Int4,
        /// The start of what it answered.
        answer -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    /// An event on its way to an endpoint.
    webhook_deliveries (account_id, event_id, endpoint_id) {
        account_id -> Uuid,
        event_id -> Uuid,
        endpoint_id -> Uuid,
        status -> Text,
        /// How often it was sent, or was about to be when the worker died.
        attempts -> Int4,
        next_attempt_at -> Timestamptz,
        /// Until then a worker is sending it; after that, another may.
        leased_until -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    /// Where an account wants its events sent.
    webhook_endpoints (account_id, id) {
        account_id -> Uuid,
        id -> Uuid,
        request_id -> Uuid,
        url -> Text,
        description -> Nullable<Text>,
        /// Types of events, or * for all of them.
        enabled_events -> Jsonb,
        api_version -> Nullable<Text>,
        metadata -> Jsonb,
        disabled -> Bool,
        /// The secret under which deliveries are signed, encrypted under the server's secret.
        sealed_secret -> Bytea,
        /// The secret before it was rolled; deliveries are signed with both until it expires.
        previous_sealed_secret -> Nullable<Bytea>,
        previous_secret_expires_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::joinable!(api_keys -> accounts (account_id));

diesel::allow_tables_to_appear_in_same_query!(
    accounts,
    api_keys,
    balance_transactions,
    charges,
    customers,
    disputes,
    events,
    idempotency_records,
    network_notifications,
    payment_intents,
    payment_methods,
    refunds,
    tokens,
    webhook_attempts,
    webhook_deliveries,
    webhook_endpoints,
);
