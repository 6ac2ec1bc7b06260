DROP TABLE balance_transactions;
DROP TABLE refunds;
ALTER TABLE payment_intents DROP CONSTRAINT payment_intents_latest_charge_fkey;
DROP TABLE charges;
DROP TABLE payment_intents;
