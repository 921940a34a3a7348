-- Types by which aws_s3 is told of objects. Names, columns and parameters are those of Amazon RDS.
\echo Use "CREATE EXTENSION aws_commons" to load this file. \quit

-- Whom the owner of aws_s3 lets in needs these, too.
GRANT USAGE ON SCHEMA aws_commons TO PUBLIC;

CREATE TYPE aws_commons._s3_uri_1 AS (bucket text, file_path text, region text);

CREATE TYPE aws_commons._aws_credentials_1 AS (access_key text, secret_key text, session_token text);

CREATE FUNCTION aws_commons.create_s3_uri(bucket text, file_path text, region text)
RETURNS aws_commons._s3_uri_1
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW(bucket, file_path, region)::aws_commons._s3_uri_1;

CREATE FUNCTION aws_commons.create_aws_credentials(access_key text, secret_key text, session_token text)
RETURNS aws_commons._aws_credentials_1
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ROW(access_key, secret_key, session_token)::aws_commons._aws_credentials_1;
