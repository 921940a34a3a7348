-- Games with roles: to be, to hold or to hand out what is the platform's.

-- attempt: the attributes of a superuser
-- as: master
ALTER ROLE master SUPERUSER;
CREATE ROLE other SUPERUSER;
CREATE ROLE other REPLICATION;
CREATE ROLE other BYPASSRLS;
ALTER USER plain WITH REPLICATION;
ALTER ROLE master BYPASSRLS;
-- sees: permission denied to give a role the attribute SUPERUSER
-- sees: permission denied to give a role the attribute REPLICATION
-- sees: permission denied to give a role the attribute BYPASSRLS

-- attempt: the same by a plain user
-- as: plain
ALTER ROLE plain SUPERUSER;
ALTER ROLE plain CREATEROLE;
CREATE ROLE other;
ALTER ROLE master PASSWORD 'known';
GRANT master TO plain;
-- sees: permission denied

-- attempt: roles that are programs and files of the server
-- as: master
GRANT pg_execute_server_program TO master;
GRANT pg_read_server_files TO master;
GRANT pg_write_server_files TO plain;
CREATE ROLE other IN ROLE pg_execute_server_program;
CREATE ROLE other IN GROUP pg_read_server_files;
ALTER GROUP pg_execute_server_program ADD USER master;
-- sees: permission denied to grant role "pg_execute_server_program"
-- sees: permission denied to alter role "pg_execute_server_program"

-- attempt: by the platform's group and its ADMIN OPTION
-- as: master
GRANT rds_superuser TO rdsadmin;
GRANT rdsadmin TO rds_superuser;
GRANT rdsadmin TO master WITH ADMIN OPTION;
GRANT pg_execute_server_program TO rds_superuser;
GRANT rdsrepladmin TO master;
GRANT rdsmon TO master;
-- sees: permission denied to change memberships of role "rdsadmin"
-- sees: permission denied to change memberships of role "rds_superuser"
-- sees: permission denied to grant role "rdsadmin"

-- attempt: the platform's group to whoever runs it
-- as: master
CREATE ROLE other CREATEROLE;
GRANT rds_superuser TO other WITH ADMIN OPTION;
GRANT other TO master;
SET ROLE other;
GRANT rds_password TO CURRENT_USER, CURRENT_ROLE;
GRANT rds_iam TO SESSION_USER;
SELECT 'has: ' || string_agg(roleid::regrole || ' of ' || member::regrole, ', ' ORDER BY roleid::regrole::text) FROM pg_auth_members m WHERE roleid::regrole::text IN ('rds_password', 'rds_iam');
REVOKE rds_password FROM CURRENT_USER;
REVOKE rds_iam FROM SESSION_USER;
GRANT rds_iam TO PUBLIC;
RESET ROLE;
REVOKE rds_superuser FROM other;
-- sees: has: rds_iam of master, rds_password of other
-- not: of rdsadmin

-- attempt: with a grantor who may
-- as: master
GRANT rds_superuser TO plain GRANTED BY rdsadmin;
GRANT pg_execute_server_program TO plain GRANTED BY rdsadmin;
-- sees: cannot choose the grantor of roles of the platform
-- sees: permission denied to grant role "pg_execute_server_program"

-- attempt: a plain user hands out the platform's group
-- as: plain
GRANT rds_superuser TO plain;
GRANT rds_iam TO master;
REVOKE rds_superuser FROM master;
-- sees: permission denied to grant or revoke roles of the platform

-- attempt: a member who is no manager hands it on
-- as: master
CREATE ROLE manager CREATEROLE;
GRANT manager TO plain;
-- as: plain
SET ROLE manager;
GRANT rds_superuser TO plain;
ALTER ROLE master PASSWORD 'known';
DROP ROLE master;
-- sees: permission denied to grant or revoke roles of the platform
-- sees: permission denied to alter role "master"
-- sees: permission denied to drop role "master"

-- attempt: the password of a platform's role
-- as: master
ALTER ROLE rdsadmin PASSWORD 'known';
ALTER USER rdsmon PASSWORD 'known';
ALTER ROLE rdsrepladmin LOGIN PASSWORD 'known';
ALTER ROLE rdsadmin VALID UNTIL '2000-01-01';
ALTER ROLE rdsmon CONNECTION LIMIT 0;
ALTER ROLE rdsadmin NOLOGIN;
-- sees: permission denied to alter role "rdsadmin"
-- sees: permission denied to alter role "rdsmon"
-- sees: permission denied to alter role "rdsrepladmin"

-- attempt: the name of a platform's role
-- as: master
ALTER ROLE rdsmon RENAME TO other;
CREATE ROLE other;
ALTER ROLE other RENAME TO rds_new;
ALTER ROLE other RENAME TO rdsadmin;
CREATE ROLE rds_admin;
CREATE ROLE pg_mine;
CREATE ROLE "rdsadmin";
CREATE ROLE pg_read_server_files;
-- sees: permission denied to rename role "rdsmon"
-- sees: role name "rds_new" is reserved
-- sees: role name "pg_mine" is reserved

-- attempt: settings of a platform's role
-- as: master
ALTER ROLE rdsadmin SET search_path = evil;
ALTER ROLE rdsmon IN DATABASE target SET search_path = evil;
ALTER ROLE rdsadmin RESET ALL;
ALTER ROLE ALL SET search_path = evil;
ALTER ROLE rds_superuser SET role = rdsadmin;
-- sees: permission denied to alter role "rdsadmin"
-- sees: permission denied to alter role "rdsmon"
-- sees: permission denied to alter role "rds_superuser"

-- attempt: dropped, or its things taken
-- as: master
DROP ROLE rdsadmin;
DROP ROLE rdsmon, rdsrepladmin;
REASSIGN OWNED BY rdsadmin TO master;
REASSIGN OWNED BY master TO rdsadmin;
DROP OWNED BY rdsadmin CASCADE;
DROP OWNED BY rds_superuser;
-- sees: permission denied to drop role "rdsadmin"
-- sees: permission denied to drop or reassign objects of role "rdsadmin"
-- sees: permission denied to give objects to role "rdsadmin"
-- sees: permission denied to drop or reassign objects of role "rds_superuser"

-- attempt: the way round by a role in between
-- as: master
CREATE ROLE a;
CREATE ROLE b;
GRANT a TO b;
GRANT pg_read_server_files TO a;
GRANT rds_superuser TO a;
GRANT a TO plain;
-- as: plain
SET ROLE b;
GRANT pg_execute_server_program TO b;
-- as: master
REVOKE rds_superuser FROM a;
-- sees: permission denied to grant role "pg_read_server_files"
-- sees: permission denied to grant role "pg_execute_server_program"|permission denied to set role

-- attempt: the owner of every database
-- as: plain
GRANT pg_database_owner TO plain;
SET ROLE pg_database_owner;
-- as: master
GRANT pg_database_owner TO plain;
CREATE ROLE other IN ROLE pg_database_owner;
-- sees: permission denied|must have admin option
-- sees: role "pg_database_owner" cannot have explicit members

-- attempt: reserved connections and maintenance
-- since: 17
-- as: master
GRANT pg_use_reserved_connections TO master;
GRANT pg_maintain TO master;
-- sees: permission denied to grant role "pg_use_reserved_connections"
-- sees: permission denied to grant role "pg_maintain"

-- attempt: roles by the numbers of others
-- as: master
UPDATE pg_authid SET oid = 10 WHERE rolname = 'master';
INSERT INTO pg_auth_members (roleid, member, grantor) VALUES (10, 'master'::regrole, 10);
DELETE FROM pg_authid WHERE rolname = 'rdsadmin';
-- sees: permission denied for table pg_authid
-- sees: permission denied for table pg_auth_members

-- attempt: createrole_self_grant, which grants on the way
-- since: 16
-- as: master
SET createrole_self_grant = 'set, inherit';
CREATE ROLE other IN ROLE rdsadmin;
CREATE ROLE other;
GRANT rdsadmin TO other;
-- sees: permission denied to grant role "rdsadmin"

-- attempt: comments and labels on the platform's roles
-- as: master
COMMENT ON ROLE rdsadmin IS 'mine';
SECURITY LABEL ON ROLE rdsadmin IS 'mine';
-- sees: permission denied to comment on role "rdsadmin"
-- sees: permission denied to label role "rdsadmin"|no security label providers
