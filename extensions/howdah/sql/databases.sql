-- The platform's databases.
\set VERBOSITY terse
\c - master
DROP DATABASE rdsadmin;
DROP DATABASE IF EXISTS rdsadmin WITH (FORCE);
ALTER DATABASE rdsadmin RENAME TO mine;
ALTER DATABASE rdsadmin OWNER TO master;
ALTER DATABASE rdsadmin CONNECTION LIMIT 0;
ALTER DATABASE rdsadmin SET TABLESPACE pg_default;
ALTER DATABASE rdsadmin SET search_path = evil;
ALTER DATABASE rdsadmin REFRESH COLLATION VERSION;
COMMENT ON DATABASE rdsadmin IS 'mine';
CREATE DATABASE copy TEMPLATE rdsadmin;
CREATE DATABASE copy TEMPLATE "rdsadmin" STRATEGY file_copy;
CREATE DATABASE mine;
ALTER DATABASE mine RENAME TO rdsadmin;
DROP DATABASE mine;
SELECT has_database_privilege('rdsadmin', 'CONNECT');
\set VERBOSITY sqlstate
GRANT CONNECT ON DATABASE rdsadmin TO master;
SELECT has_database_privilege('rdsadmin', 'CONNECT');
-- other databases of the platform are kept by their owner
DROP DATABASE template1;
ALTER DATABASE template0 ALLOW_CONNECTIONS true;
-- the guard does not depend on who owns a protected database
\c - rdsadmin
ALTER DATABASE rdsadmin OWNER TO master;
\c - master
\set VERBOSITY terse
DROP DATABASE rdsadmin;
CREATE DATABASE copy TEMPLATE rdsadmin;
ALTER DATABASE rdsadmin SET search_path = evil;
\c - rdsadmin
ALTER DATABASE rdsadmin OWNER TO rdsadmin;
-- a superuser may
ALTER DATABASE rdsadmin CONNECTION LIMIT -1;
