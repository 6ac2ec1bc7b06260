-- What oncepay sends to PostgreSQL for one new POST /v1/charges with tok_visa, for pgbench -M prepared: each statement
-- is one round trip. The texts were taken off the connection; the test "bench_charge_sql_is_what_the_service_sends"
-- takes them off again and compares.
--
-- Where pgbench must differ: the types that diesel sends along stand here as casts; a parameter that is NULL is written
-- out, because pgbench has no NULL; and a fresh id is put together from two numbers of 16 digits, the first of which
-- grows like the time in oncepay's ids. The bounds for locks and statements, which oncepay sends with BEGIN in the
-- same trip, bench/run sets for the whole session, because pgbench sends one statement a trip: that favours pgbench.
--
-- :first is given by bench/run, like all that is not a number.
\set first :first + 1
\set last random(1000000000000000, 9999999999999999)

SELECT api_keys.account_id, idempotency_records.* FROM api_keys LEFT JOIN LATERAL (SELECT
    "idempotency_records"."fingerprint_version", "idempotency_records"."fingerprint",
    "idempotency_records"."request_id", "idempotency_records"."status", "idempotency_records"."content_type",
    "idempotency_records"."location", "idempotency_records"."sealed", "idempotency_records"."body",
    "idempotency_records"."created_at", "idempotency_records"."expires_at"
    FROM idempotency_records WHERE idempotency_records.account_id = api_keys.account_id
    AND idempotency_records.source = :source AND idempotency_records.key = (:first || :last) LIMIT 1)
    AS idempotency_records ON true WHERE api_keys.secret_hash = :secret_hash AND api_keys.revoked_at IS NULL;

BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

SELECT pg_try_advisory_xact_lock(:last);

SELECT "idempotency_records"."fingerprint_version", "idempotency_records"."fingerprint",
    "idempotency_records"."request_id", "idempotency_records"."status", "idempotency_records"."content_type",
    "idempotency_records"."location", "idempotency_records"."sealed", "idempotency_records"."body",
    "idempotency_records"."created_at", "idempotency_records"."expires_at"
    FROM "idempotency_records"
    WHERE (("idempotency_records"."account_id" = :account) AND (("idempotency_records"."source" = :source)
    AND ("idempotency_records"."key" = (:first || :last)))) LIMIT :one;

INSERT INTO "payment_methods" ("account_id", "id", "request_id", "customer_id", "test_card", "expiry_month",
    "expiry_year", "cvc_given", "billing_details", "metadata", "created_at", "detached_at")
    VALUES (:account, (:first || :last)::uuid, (:first || :last)::uuid, NULL, :test_card, :expiry_month,
    :expiry_year, :no, :billing_details, :metadata, :now, NULL);

WITH "charge" AS (INSERT INTO "charges" ("account_id", "id", "request_id", "status", "amount", "amount_captured",
    "amount_refunded", "currency", "customer_id", "payment_intent_id", "payment_method_id", "balance_transaction_id",
    "decline_code", "disputed", "card", "description", "metadata", "receipt_email", "shipping", "statement_descriptor",
    "statement_descriptor_suffix", "user_report", "created_at")
    VALUES (:account, (:first || :last)::uuid, (:first || :last)::uuid, :captured, :amount, :amount, :zero, :currency,
    NULL, NULL, (:first || :last)::uuid, (:first || :last)::uuid, NULL, :no, :card, NULL, :metadata, NULL, NULL, NULL,
    NULL, NULL, :now)),
    "ledger" AS (INSERT INTO "balance_transactions" ("account_id", "id", "request_id", "kind", "charge_id",
    "refund_id", "amount", "currency", "created_at", "dispute_id")
    VALUES (:account, (:first || :last)::uuid, (:first || :last)::uuid, :kind, (:first || :last)::uuid, NULL, :amount,
    :currency, :now, NULL))
    , written AS (INSERT INTO events (account_id, request_id, idempotency_key, created_at, id, type, payload)
    SELECT :account::uuid, (:first || :last)::uuid, (:first || :last), :now::timestamptz, happened.*
    FROM unnest(('{' || :first || :last || '}')::uuid[], :event_types::text[], :event_payloads::json[])
    AS happened (id, type, payload) RETURNING account_id, id, type, created_at)
    INSERT INTO webhook_deliveries (account_id, event_id, endpoint_id, status, attempts, next_attempt_at)
    SELECT written.account_id, written.id, endpoint.id, 'pending', 0, written.created_at
    FROM written JOIN webhook_endpoints endpoint ON endpoint.account_id = written.account_id
    AND NOT endpoint.disabled AND endpoint.deleted_at IS NULL
    AND endpoint.enabled_events ?| ARRAY['*', written.type];

INSERT INTO "idempotency_records" ("account_id", "source", "key", "fingerprint_version", "fingerprint", "request_id",
    "status", "content_type", "location", "sealed", "body", "created_at", "expires_at")
    VALUES (:account, :source, (:first || :last), :one, :fingerprint, (:first || :last)::uuid, :status, :content_type,
    :location, :no, :body, :now, :later);

COMMIT;
