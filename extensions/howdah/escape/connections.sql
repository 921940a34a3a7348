-- Connections that the server opens, back to itself or to its neighbours.

-- attempt: dblink to the private socket, without a password
-- as: master
CREATE EXTENSION dblink;
SELECT dblink_connect('host={socket} port={port} dbname=postgres user=rdsadmin');
SELECT dblink_exec('host={socket} port={port} dbname=postgres user=rdsadmin', 'ALTER ROLE master SUPERUSER');
SELECT * FROM dblink('host={socket} port={port} dbname=postgres user=rdsadmin', 'SELECT 1') AS t (i int);
-- sees: password (is|or GSSAPI delegated credentials) required

-- attempt: dblink to the private socket, with a password that is not asked for
-- as: master
CREATE EXTENSION dblink;
SELECT dblink_connect('host={socket} port={port} dbname=postgres user=rdsadmin password=x');
SELECT dblink_exec('host={socket} port={port} dbname=postgres user=rdsadmin password=x', 'ALTER ROLE master SUPERUSER');
SELECT dblink_connect('c', 'postgresql://rdsadmin:x@/postgres?host={socket}&port={port}');
SELECT dblink_connect('host={socket} port={port} dbname=postgres user=rdsmon password=x');
-- sees: role "rdsadmin" cannot log in from a server
-- sees: role "rdsmon" cannot log in from a server

-- attempt: dblink to the private socket, as a standby would
-- as: master
CREATE EXTENSION dblink;
SELECT dblink_connect('host={socket} port={port} dbname=postgres user=rdsadmin password=x replication=database');
SELECT dblink_connect('host={socket} port={port} user=rdsadmin password=x replication=true');
SELECT dblink_connect('host={socket} port={port} dbname=postgres user=rdsrepladmin password=x replication=database');
-- sees: role "rdsadmin" cannot log in from a server
-- not: (DBLINK|^OK)

-- attempt: settings for a session of the platform, before it is refused
-- as: master
CREATE EXTENSION dblink;
SELECT dblink_connect($$host={socket} port={port} dbname=postgres user=rdsadmin password=x options='-c session_preload_libraries=/tmp/x -c log_statement=all'$$);
-- sees: role "rdsadmin" cannot log in from a server
-- not: could not access file

-- attempt: dblink over loopback
-- as: master
CREATE EXTENSION dblink;
SELECT dblink_connect('host=127.0.0.1 port={port} dbname=postgres user=rdsadmin password=x');
SELECT dblink_connect('host=127.0.0.1 port={port} dbname=rdsadmin user=plain password=x');
SELECT dblink_connect('host=localhost hostaddr=127.0.0.1 port={port} dbname=postgres user=rdsrepladmin password=x');
SELECT dblink_connect('hostaddr=127.0.0.1 port={port} dbname=postgres user=rdsmon password=x');
-- sees: pg_hba.conf rejects connection for host "127.0.0.1", user "rdsadmin"
-- sees: pg_hba.conf rejects connection for host "127.0.0.1", user "rdsmon"

-- attempt: the same by a plain user who was given the functions
-- as: master
CREATE EXTENSION dblink;
-- as: plain
SELECT dblink_connect('host={socket} port={port} dbname=postgres user=rdsadmin password=x');
SELECT dblink_connect('host={socket} port={port} dbname=postgres user=rdsadmin');
-- sees: cannot log in from a server
-- sees: password (is|or GSSAPI delegated credentials) required

-- attempt: dblink to a foreign server of one's own
-- as: master
CREATE EXTENSION dblink;
CREATE SERVER self FOREIGN DATA WRAPPER dblink_fdw OPTIONS (host '{socket}', port '{port}', dbname 'postgres');
CREATE USER MAPPING FOR master SERVER self OPTIONS (user 'rdsadmin', password 'x');
SELECT dblink_exec('self', 'ALTER ROLE master SUPERUSER');
CREATE USER MAPPING FOR PUBLIC SERVER self OPTIONS (user 'rdsadmin');
-- sees: role "rdsadmin" cannot log in from a server

-- attempt: postgres_fdw to the private socket
-- as: master
CREATE EXTENSION postgres_fdw;
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{socket}', port '{port}', dbname 'postgres');
CREATE USER MAPPING FOR master SERVER self OPTIONS (user 'rdsadmin', password 'x');
CREATE FOREIGN TABLE pa (oid oid, rolname name, rolsuper bool) SERVER self OPTIONS (schema_name 'pg_catalog', table_name 'pg_authid');
UPDATE pa SET rolsuper = true WHERE rolname = 'master';
IMPORT FOREIGN SCHEMA pg_catalog LIMIT TO (pg_authid) FROM SERVER self INTO public;
ANALYZE pa;
-- sees: role "rdsadmin" cannot log in from a server

-- attempt: postgres_fdw without a password
-- as: master
CREATE EXTENSION postgres_fdw;
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{socket}', port '{port}', dbname 'postgres');
CREATE USER MAPPING FOR master SERVER self OPTIONS (user 'rdsadmin');
CREATE FOREIGN TABLE pa (rolname name) SERVER self OPTIONS (schema_name 'pg_catalog', table_name 'pg_authid');
SELECT * FROM pa;
ALTER USER MAPPING FOR master SERVER self OPTIONS (ADD password_required 'false');
-- sees: password (is|or GSSAPI delegated credentials) required
-- sees: password_required=false is superuser-only

-- attempt: a foreign table that the platform reads, with its rights
-- as: master
CREATE EXTENSION postgres_fdw;
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{socket}', port '{port}', dbname 'postgres');
CREATE USER MAPPING FOR PUBLIC SERVER self OPTIONS (user 'rdsadmin', password 'x');
CREATE USER MAPPING FOR rdsadmin SERVER self OPTIONS (user 'rdsadmin');
CREATE FOREIGN TABLE pa (rolname name) SERVER self OPTIONS (schema_name 'pg_catalog', table_name 'pg_authid');
-- as: rdsadmin
SELECT count(*) || ' roles' FROM public.pa;
ANALYZE public.pa;
-- sees: cannot log in from a server
-- not: roles

-- attempt: files of the server as keys and passwords
-- as: master
CREATE EXTENSION dblink;
SELECT dblink_connect('host=127.0.0.1 port={port} dbname=postgres user=rdsmon password=x sslmode=require sslcert={data}/server.crt sslkey={data}/server.key');
SELECT dblink_connect('host=127.0.0.1 user=x password=x passfile={data}/PG_VERSION');
SELECT dblink_connect('c', 'postgresql://x:x@127.0.0.1/x?ssl%6Bey={data}/server.key');
SELECT dblink_connect('user=x password=x servicefile = {data}/PG_VERSION service=x');
SELECT dblink_exec('user=x password=x sslkeylogfile={dir}/escaped', 'SELECT 1');
-- sees: permission denied to use the connection option "sslcert"
-- sees: permission denied to use the connection option "sslkey"
-- sees: permission denied to use the connection option "passfile"
-- sees: permission denied to use the connection option "servicefile"
-- sees: permission denied to use the connection option "sslkeylogfile"

-- attempt: the same as options of foreign servers
-- as: master
CREATE EXTENSION postgres_fdw;
CREATE SERVER a FOREIGN DATA WRAPPER postgres_fdw OPTIONS (passfile '{data}/PG_VERSION');
CREATE SERVER b FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname 'x');
ALTER SERVER b OPTIONS (ADD sslkeylogfile '{dir}/escaped');
CREATE USER MAPPING FOR master SERVER b OPTIONS (sslkey '{data}/server.key');
CREATE USER MAPPING FOR master SERVER b OPTIONS (password 'x');
ALTER USER MAPPING FOR master SERVER b OPTIONS (ADD sslcert '{data}/server.crt');
-- sees: permission denied to use the connection option "passfile"
-- sees: permission denied to use the connection option "sslkeylogfile"
-- sees: permission denied to use the connection option "sslkey"
-- sees: permission denied to use the connection option "sslcert"

-- attempt: a subscription to the private socket
-- as: master
CREATE SUBSCRIPTION s CONNECTION 'host={socket} port={port} dbname=postgres user=rdsadmin password=x' PUBLICATION p;
CREATE SUBSCRIPTION s CONNECTION 'host={socket} port={port} dbname=postgres user=rdsadmin' PUBLICATION p;
CREATE SUBSCRIPTION s CONNECTION 'host={socket} port={port} user=rdsadmin' PUBLICATION p WITH (password_required = false);
-- sees: must be superuser to create subscriptions|cannot log in from a server|password is required

-- attempt: a subscription with keys of the server, or a file to write
-- as: master
CREATE SUBSCRIPTION s CONNECTION 'user=x password=x sslkeylogfile={dir}/escaped' PUBLICATION p WITH (connect = false);
CREATE SUBSCRIPTION s CONNECTION 'user=x password=x sslkey={data}/server.key' PUBLICATION p WITH (connect = false);
CREATE SUBSCRIPTION s CONNECTION 'user=x password=x' PUBLICATION p WITH (connect = false);
ALTER SUBSCRIPTION s CONNECTION 'user=x password=x passfile={data}/PG_VERSION';
ALTER SUBSCRIPTION s OWNER TO rdsadmin;
ALTER SUBSCRIPTION s SET (slot_name = NONE);
DROP SUBSCRIPTION s;
-- sees: permission denied to use the connection option "sslkeylogfile"
-- sees: permission denied to use the connection option "passfile"
-- sees: must be able to SET ROLE "rdsadmin"|permission denied to change owner of subscription

-- attempt: a subscription without a password, and one that gets rid of it
-- as: master
CREATE SUBSCRIPTION s CONNECTION 'host={socket} port={port} dbname=postgres user=rdsadmin' PUBLICATION p WITH (connect = false);
CREATE SUBSCRIPTION s CONNECTION 'postgresql://rdsadmin@/postgres?host={socket}&port={port}&password=' PUBLICATION p WITH (connect = false);
CREATE SUBSCRIPTION s CONNECTION 'host={socket} port={port} user=x password=x' PUBLICATION p WITH (connect = false);
ALTER SUBSCRIPTION s CONNECTION 'host={socket} port={port} dbname=postgres user=rdsadmin';
ALTER SUBSCRIPTION s CONNECTION 'host={socket} port={port} dbname=postgres user=rdsadmin password=x';
ALTER SUBSCRIPTION s REFRESH PUBLICATION;
ALTER SUBSCRIPTION s ENABLE;
ALTER SUBSCRIPTION s REFRESH PUBLICATION;
ALTER SUBSCRIPTION s DISABLE;
ALTER SUBSCRIPTION s SET (slot_name = NONE);
DROP SUBSCRIPTION s;
-- sees: password is required
-- sees: role "rdsadmin" cannot log in from a server

-- attempt: a subscription that the platform owns, or a plain user makes
-- as: master
CREATE SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port={port} user=x password=x' PUBLICATION p WITH (connect = false);
ALTER SUBSCRIPTION s OWNER TO rdsadmin;
DO $$ BEGIN EXECUTE 'ALTER SUBSCRIPTION s OWNER TO rdsadmin'; END $$;
REASSIGN OWNED BY master TO rdsadmin;
SELECT 'owner: ' || subowner::regrole FROM pg_subscription WHERE subname = 's';
-- as: plain
ALTER SUBSCRIPTION s CONNECTION 'host=127.0.0.1 port={port} user=y password=y';
DROP SUBSCRIPTION s;
CREATE SUBSCRIPTION of_plain CONNECTION 'host=127.0.0.1 port={port} user=x password=x' PUBLICATION p WITH (connect = false);
-- as: master
ALTER SUBSCRIPTION s SET (slot_name = NONE);
DROP SUBSCRIPTION s;
-- sees: owner: master
-- sees: must be owner of subscription s
-- sees: must be superuser to create subscriptions|permission denied to create subscription

-- attempt: the server as a go-between to others
-- as: master
CREATE EXTENSION dblink;
SELECT dblink_connect('host=127.0.0.1 port=1 user=x password=x connect_timeout=1');
SELECT dblink_connect('host=@howdah port=1 user=x password=x');
SELECT dblink_connect('host=/proc/self port=1 user=x password=x');
-- sees: could not establish connection

-- attempt: a program of the server's that connects
-- as: rdsadmin
COPY (SELECT 1) TO PROGRAM 'psql -X -h {socket} -p {port} -U rdsadmin -c "ALTER ROLE master SUPERUSER" postgres';
-- sees: child process exited with exit code 2
