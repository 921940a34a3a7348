-- aws_s3, where somebody uses it against the platform. Where it leads is told by the role, which only the
-- agent knows (internal/host/database/exchange has attempts at that).

-- attempt: what only the platform reads, exported by a view that it looks at
-- as: master
CREATE EXTENSION aws_s3 CASCADE;
CREATE VIEW public.leak AS SELECT rows_uploaded FROM aws_s3.query_export_to_s3('TABLE pg_authid', 'b', 'f');
GRANT ALL ON public.leak TO PUBLIC;
GRANT USAGE ON SCHEMA aws_s3 TO PUBLIC;
-- as: rdsadmin
TABLE public.leak;
-- as: rdsmon
TABLE public.leak;
-- sees: permission denied to export or import with the rights of the platform
-- not: no agent works

-- attempt: a catalog as the target
-- as: master
CREATE EXTENSION aws_s3 CASCADE;
SELECT aws_s3.table_import_from_s3('pg_authid', '', '', 'b', 'f', 'r');
SELECT aws_s3.table_import_from_s3('pg_catalog.pg_authid', '', '', 'b', 'f', 'r');
-- sees: ERROR:

-- attempt: a program or a file by the options
-- as: master
CREATE EXTENSION aws_s3 CASCADE;
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f', 'r', $$format csv) TO PROGRAM 'touch {dir}/written$$);
SELECT aws_s3.query_export_to_s3('SELECT 1', 'b', 'f', 'r', $$(format csv); COPY (SELECT 1) TO '{dir}/written'; --$$);
SELECT aws_s3.query_export_to_s3('SELECT 1) TO PROGRAM ''touch {dir}/written'' --', 'b', 'f');
-- sees: ERROR:

-- attempt: a function of the extension replaced, or used under another name
-- as: master
CREATE EXTENSION aws_s3 CASCADE;
CREATE OR REPLACE FUNCTION aws_commons.create_s3_uri(bucket text, file_path text, region text) RETURNS aws_commons._s3_uri_1 LANGUAGE plpgsql AS $$ BEGIN ALTER ROLE master SUPERUSER; END $$;
CREATE FUNCTION public.e(text) RETURNS bigint LANGUAGE c AS 'howdah', 'howdah_s3_export';
CREATE FUNCTION public.s(bool) RETURNS void LANGUAGE c AS 'howdah', 'howdah_storage_full';
-- sees: must be owner of function
-- sees: permission denied for language c

-- attempt: the socket of somebody else
-- as: master
SET howdah.agent_socket = '{dir}/x';
ALTER ROLE master SET howdah.agent_socket = '{dir}/x';
ALTER DATABASE target SET howdah.agent_socket = '{dir}/x';
-- sees: cannot be changed now

-- attempt: the schemas of the extension, made beforehand by somebody who would say who uses it
-- as: master
GRANT CREATE ON DATABASE target TO plain;
-- as: plain
CREATE SCHEMA aws_commons;
GRANT ALL ON SCHEMA aws_commons TO PUBLIC;
-- as: master
CREATE EXTENSION aws_commons;
CREATE EXTENSION aws_s3 CASCADE;
-- as: plain
DROP SCHEMA aws_commons;
CREATE SCHEMA aws_s3;
GRANT ALL ON SCHEMA aws_s3 TO PUBLIC;
-- as: master
CREATE EXTENSION aws_s3 CASCADE;
SELECT 'there is ' || count(*) FROM pg_extension WHERE extname ~ '^aws';
-- as: plain
DROP SCHEMA aws_s3;
-- as: master
CREATE SCHEMA aws_s3;
CREATE EXTENSION aws_s3 CASCADE;
SELECT 'then ' || count(*) FROM pg_extension WHERE extname ~ '^aws';
-- sees: must be owner of schema aws_commons
-- sees: must be owner of schema aws_s3
-- sees: ^there is 0$
-- sees: ^then 2$
