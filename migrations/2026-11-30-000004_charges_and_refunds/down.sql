DROP TABLE balance_transactions;
DROP TABLE refunds;
DROP TABLE charges;
