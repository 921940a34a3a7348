CREATE FUNCTION bait_help(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT $1';
CREATE TABLE bait_seen AS SELECT current_user::text AS who, bait_help(1) AS answer,
	'a\'::text AS literal, current_setting('transform_null_equals') AS nulls;
GRANT SELECT ON bait_seen TO PUBLIC;
