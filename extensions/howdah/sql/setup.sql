-- The platform as Howdah makes it. pg_regress names the bootstrap superuser
-- after the operating-system user; t/ has it as rdsadmin.
CREATE ROLE rdsadmin SUPERUSER LOGIN;
CREATE DATABASE rdsadmin OWNER rdsadmin TEMPLATE template0;
CREATE DATABASE rdsadmin_owned OWNER rdsadmin;
\c - rdsadmin
\getenv srcdir PG_ABS_SRCDIR
\set bootstrap :srcdir '/bootstrap.sql'
SET client_min_messages = warning;
\set ECHO none
\i :bootstrap
-- running it again changes nothing
\i :bootstrap
\set ECHO all
SELECT count(*) FROM pg_roles WHERE rolname ~ '^rds';
-- a master user, another one, and an application's role manager
CREATE ROLE master LOGIN CREATEROLE CREATEDB;
GRANT rds_superuser TO master WITH ADMIN OPTION;
CREATE ROLE master2 LOGIN CREATEROLE;
GRANT rds_superuser TO master2;
CREATE ROLE manager LOGIN CREATEROLE;
CREATE ROLE plain LOGIN;
CREATE ROLE holder LOGIN;
GRANT pg_read_server_files TO holder;
CREATE ROLE other_super SUPERUSER;
CREATE ROLE operator;
GRANT other_super TO operator;
CREATE ROLE replicator REPLICATION;
CREATE ROLE beyond_rls BYPASSRLS;
ALTER DATABASE contrib_regression OWNER TO master;
-- the module is there
\c - master
SELECT has_parameter_privilege('howdah.extensions', 'SET');
SHOW howdah.admin_role;
SHOW howdah.superuser_role;
SHOW howdah.protected_databases;
