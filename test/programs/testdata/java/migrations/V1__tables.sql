CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
CREATE EXTENSION IF NOT EXISTS pgcrypto WITH SCHEMA public;
CREATE TABLE customers (id uuid PRIMARY KEY DEFAULT public.gen_random_uuid(), name text NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer uuid NOT NULL REFERENCES customers, total numeric(12, 2) CHECK (total >= 0));
INSERT INTO customers (name) SELECT 'customer ' || i FROM generate_series(1, 1000) i;
INSERT INTO orders (customer, total) SELECT id, 1 FROM customers;
