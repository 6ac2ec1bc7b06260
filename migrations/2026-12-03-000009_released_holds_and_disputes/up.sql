-- A refund of the whole of a hold lets it go: no money moves, so it has no row of the ledger.
ALTER TABLE refunds ALTER COLUMN balance_transaction_id DROP NOT NULL;
COMMENT ON COLUMN refunds.balance_transaction_id IS 'The row that moved the money; none if the refund only let a hold go.';

-- What a dispute moves is of the dispute, as what a refund moves is of the refund.
ALTER TABLE balance_transactions ADD COLUMN dispute_id uuid;
ALTER TABLE balance_transactions
    ADD CONSTRAINT balance_transactions_dispute_fkey
    FOREIGN KEY (account_id, dispute_id) REFERENCES disputes (account_id, id);
UPDATE balance_transactions b SET dispute_id = d.id FROM disputes d
    WHERE (d.account_id, d.charge_id) = (b.account_id, b.charge_id) AND b.kind IN ('dispute', 'dispute_reversal');
ALTER TABLE balance_transactions DROP CONSTRAINT balance_transactions_source;
ALTER TABLE balance_transactions ADD CONSTRAINT balance_transactions_source CHECK (
    (kind IN ('refund', 'refund_failure')) = (refund_id IS NOT NULL)
    AND (kind IN ('dispute', 'dispute_reversal')) = (dispute_id IS NOT NULL));
CREATE INDEX balance_transactions_dispute ON balance_transactions (dispute_id, account_id, id) WHERE dispute_id IS NOT NULL;

-- A payment method that no customer owns pays once. Whether it has is asked here.
-- The index leads with the method: one that led with the account could be taken for a look-up of a charge by its id.
CREATE INDEX charges_payment_method ON charges (payment_method_id, account_id);
