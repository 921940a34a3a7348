-- The log files of this server as foreign tables (src/log.c). Names and parameters are those of Amazon RDS.
\echo Use "CREATE EXTENSION log_fdw" to load this file. \quit

CREATE FUNCTION log_fdw_handler() RETURNS fdw_handler
AS 'MODULE_PATHNAME', 'howdah_log_handler'
LANGUAGE C STRICT;

CREATE FUNCTION log_fdw_validator(text[], oid) RETURNS void
AS 'MODULE_PATHNAME', 'howdah_log_validator'
LANGUAGE C STRICT;

CREATE FOREIGN DATA WRAPPER log_fdw HANDLER log_fdw_handler VALIDATOR log_fdw_validator;

CREATE FUNCTION list_postgres_log_files(OUT file_name text, OUT file_size_bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'howdah_log_files'
LANGUAGE C VOLATILE;

-- With the rights of whoever calls, who needs those to use the server and to create the table.
CREATE FUNCTION create_foreign_table_for_log_file(table_name text, server_name text, log_file_name text)
RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
	EXECUTE pg_catalog.format('CREATE FOREIGN TABLE %I (log_entry pg_catalog.text) SERVER %I OPTIONS (filename %L)', table_name, server_name, log_file_name);
END
$$;

-- The log has statements of all users. Who owns the extension may let others in.
REVOKE EXECUTE ON FUNCTION list_postgres_log_files(), create_foreign_table_for_log_file(text, text, text) FROM PUBLIC;
