-- Exports and imports with the rights of whoever calls, by the agent of the host (src/s3.c). Names,
-- parameters and results are those of Amazon RDS.
\echo Use "CREATE EXTENSION aws_s3" to load this file. \quit

CREATE FUNCTION aws_s3.query_export_to_s3(
	query text, bucket text, file_path text, region text DEFAULT NULL, options text DEFAULT NULL, kms_key text DEFAULT NULL,
	OUT rows_uploaded bigint, OUT files_uploaded bigint, OUT bytes_uploaded bigint)
AS 'MODULE_PATHNAME', 'howdah_s3_export'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION aws_s3.query_export_to_s3(
	query text, s3_info aws_commons._s3_uri_1, options text DEFAULT NULL, kms_key text DEFAULT NULL,
	OUT rows_uploaded bigint, OUT files_uploaded bigint, OUT bytes_uploaded bigint)
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT e.rows_uploaded, e.files_uploaded, e.bytes_uploaded
	FROM aws_s3.query_export_to_s3(query, (s3_info).bucket, (s3_info).file_path, (s3_info).region, options, kms_key) e;
END;

CREATE FUNCTION aws_s3.table_import_from_s3(
	table_name text, column_list text, options text, bucket text, file_path text, region text,
	access_key text DEFAULT NULL, secret_key text DEFAULT NULL, session_token text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'howdah_s3_import'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION aws_s3.table_import_from_s3(
	table_name text, column_list text, options text, s3_info aws_commons._s3_uri_1,
	credentials aws_commons._aws_credentials_1 DEFAULT NULL)
RETURNS text
LANGUAGE sql VOLATILE PARALLEL UNSAFE
BEGIN ATOMIC
	SELECT aws_s3.table_import_from_s3(
		table_name, column_list, options, (s3_info).bucket, (s3_info).file_path, (s3_info).region,
		(credentials).access_key, (credentials).secret_key, (credentials).session_token);
END;
