DROP TABLE tokens;
ALTER TABLE payment_methods DROP CONSTRAINT payment_methods_customer_fkey;
DROP TABLE customers;
DROP TABLE payment_methods;
