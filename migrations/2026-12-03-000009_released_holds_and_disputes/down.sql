DROP INDEX charges_payment_method;
DROP INDEX balance_transactions_dispute;
ALTER TABLE balance_transactions DROP CONSTRAINT balance_transactions_source;
ALTER TABLE balance_transactions DROP COLUMN dispute_id;
ALTER TABLE balance_transactions ADD CONSTRAINT balance_transactions_source
    CHECK ((kind IN ('refund', 'refund_failure')) = (refund_id IS NOT NULL));
-- What let a hold go has no row of the ledger to name.
DELETE FROM refunds WHERE balance_transaction_id IS NULL;
ALTER TABLE refunds ALTER COLUMN balance_transaction_id SET NOT NULL;
