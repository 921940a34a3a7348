CREATE OR REPLACE VIEW large AS SELECT * FROM orders WHERE total > 100;
COMMENT ON VIEW large IS 'of more than 100';
