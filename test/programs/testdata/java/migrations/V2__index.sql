CREATE INDEX CONCURRENTLY customers_name ON customers USING gin (name public.gin_trgm_ops);
