-- Holes that CREATEROLE leaves open, and the platform's roles.
\set VERBOSITY terse
\c - master
-- the operating-system user
GRANT pg_execute_server_program TO master;
GRANT pg_read_server_files TO plain;
GRANT pg_write_server_files TO master WITH ADMIN OPTION;
GRANT pg_monitor, pg_execute_server_program TO plain;
REVOKE pg_read_server_files FROM holder;
CREATE ROLE evil IN ROLE pg_execute_server_program;
CREATE USER evil IN ROLE pg_monitor, pg_write_server_files;
CREATE ROLE evil IN GROUP pg_read_server_files;
ALTER GROUP pg_execute_server_program ADD USER master;
ALTER ROLE pg_execute_server_program LOGIN;
-- through a role that has it
GRANT holder TO master;
CREATE ROLE evil IN ROLE holder;
ALTER ROLE holder PASSWORD 'known';
ALTER USER holder SET search_path = evil;
ALTER ROLE holder RENAME TO mine;
ALTER GROUP holder ADD USER master;
DROP ROLE holder;
-- attributes that are not inherited, but come with SET ROLE
GRANT other_super TO master;
GRANT operator TO master;
GRANT replicator TO master;
GRANT beyond_rls TO plain;
ALTER ROLE operator PASSWORD 'known';
ALTER ROLE replicator SET search_path = evil;
DROP ROLE replicator;
-- the platform's roles
GRANT rdsadmin TO master;
GRANT rdsrepladmin TO master;
GRANT rdsmon TO master;
CREATE ROLE evil IN ROLE rdsrepladmin;
ALTER ROLE rdsadmin PASSWORD 'known';
ALTER ROLE rdsrepladmin PASSWORD 'known';
ALTER ROLE rdsmon PASSWORD 'known';
ALTER ROLE rdsmon NOLOGIN;
ALTER ROLE rdsmon CONNECTION LIMIT 0;
ALTER ROLE rdsmon VALID UNTIL 'yesterday';
ALTER ROLE rdsadmin SET search_path = evil;
ALTER ROLE rdsmon IN DATABASE contrib_regression SET role = plain;
ALTER ROLE rds_superuser SET search_path = evil;
ALTER ROLE rdsrepladmin RESET ALL;
ALTER ROLE rds_superuser LOGIN;
ALTER ROLE rdsadmin RENAME TO x;
ALTER ROLE rdsrepladmin RENAME TO x;
ALTER USER rds_iam RENAME TO x;
DROP ROLE rdsadmin;
DROP ROLE plain, rdsmon;
DROP USER IF EXISTS nobody, rds_iam;
DROP OWNED BY rdsadmin;
DROP OWNED BY rds_superuser;
DROP OWNED BY plain, rds_superuser CASCADE;
REASSIGN OWNED BY rdsadmin TO master;
REASSIGN OWNED BY rds_superuser TO master;
REASSIGN OWNED BY master TO rdsadmin;
COMMENT ON ROLE rdsmon IS 'mine';
-- their memberships: as rds_iam, rdsadmin would log in another way
GRANT rds_iam TO rdsadmin;
GRANT plain TO rdsmon;
REVOKE pg_monitor FROM rdsmon;
REVOKE pg_signal_backend FROM rds_superuser;
ALTER GROUP plain ADD USER rdsmon;
ALTER GROUP plain DROP USER rdsadmin;
CREATE ROLE evil ROLE rdsrepladmin;
CREATE ROLE evil ADMIN rdsadmin;
CREATE ROLE evil IN ROLE rds_superuser;
ALTER GROUP rds_superuser ADD USER plain;
-- names
CREATE ROLE rdsproxyadmin;
DROP ROLE rdsproxyadmin;
CREATE ROLE rds_anything;
CREATE ROLE "rds_";
CREATE ROLE pg_use_reserved_connections;
ALTER ROLE plain RENAME TO rds_plain;
ALTER ROLE plain RENAME TO rdsadmin;
-- attributes
CREATE ROLE evil SUPERUSER;
CREATE ROLE evil REPLICATION;
CREATE ROLE evil BYPASSRLS;
ALTER ROLE plain SUPERUSER;
ALTER ROLE plain REPLICATION;
ALTER ROLE master BYPASSRLS;
ALTER ROLE master SUPERUSER;
CREATE ROLE fine NOSUPERUSER NOREPLICATION NOBYPASSRLS;
DROP ROLE fine;
-- what a master user may hand out
CREATE ROLE app LOGIN;
GRANT rds_superuser TO app;
GRANT rds_iam, rds_password TO app;
GRANT rds_replication TO app;
SELECT r.rolname, g.rolsuper AS by_superuser FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid JOIN pg_roles g ON g.oid = m.grantor
WHERE m.member = 'app'::regrole ORDER BY 1;
GRANT rds_iam, plain TO app;
GRANT rds_iam TO app GRANTED BY rdsadmin;
REVOKE rds_superuser, rds_iam, rds_password, rds_replication FROM app;
SELECT count(*) FROM pg_auth_members WHERE member = 'app'::regrole AND roleid::regrole::text ~ '^rds';
GRANT pg_monitor, pg_signal_backend TO app;
GRANT pg_read_all_data TO app;
ALTER ROLE app PASSWORD 'secret' CREATEDB VALID UNTIL 'infinity';
ALTER ROLE app SET search_path = public;
ALTER ROLE app RENAME TO app2;
DROP OWNED BY CURRENT_USER RESTRICT;
DROP ROLE app2;
-- oneself
ALTER ROLE master PASSWORD 'secret';
ALTER ROLE CURRENT_USER SET work_mem = '8MB';
ALTER ROLE CURRENT_USER RESET work_mem;
-- a second master user, not allowed to give the role away, manages roles too
\c - master2
CREATE ROLE app LOGIN;
GRANT rds_superuser TO app;
REVOKE rds_superuser FROM app;
DROP ROLE app;
-- a role manager who is no master user
\c - manager
GRANT rds_superuser TO manager;
GRANT rds_iam TO plain;
GRANT rds_replication TO manager;
GRANT master TO manager;
CREATE ROLE evil IN ROLE master;
ALTER ROLE master PASSWORD 'known';
ALTER ROLE master2 SET search_path = evil;
ALTER ROLE master RENAME TO x;
DROP ROLE master2;
REVOKE rds_superuser FROM master;
CREATE ROLE app;
ALTER ROLE app PASSWORD 'secret';
DROP ROLE app;
-- the users that a master user marked are still managed by others
\c - master
CREATE ROLE marked;
GRANT rds_iam TO marked;
\c - rdsadmin
DO $$ BEGIN
	IF current_setting('server_version_num')::int >= 160000 THEN
		GRANT marked TO manager WITH ADMIN OPTION;
	END IF;
END $$;
\c - manager
ALTER ROLE marked CONNECTION LIMIT 5;
DROP ROLE marked;
-- a member without CREATEROLE hands out nothing but what it has ADMIN OPTION for
\c - rdsadmin
CREATE ROLE member LOGIN;
GRANT rds_superuser TO member;
\c - member
GRANT rds_iam TO plain;
GRANT rds_superuser TO plain;
\c - rdsadmin
DROP ROLE member;
