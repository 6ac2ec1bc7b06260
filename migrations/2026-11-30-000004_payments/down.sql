ALTER TABLE refunds DROP CONSTRAINT refunds_balance_transaction_fkey;
ALTER TABLE charges DROP CONSTRAINT charges_balance_transaction_fkey;
DROP TABLE balance_transactions;
DROP TABLE refunds;
ALTER TABLE payment_intents DROP CONSTRAINT payment_intents_latest_charge_fkey;
DROP TABLE charges;
DROP TABLE payment_intents;
