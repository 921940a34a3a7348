/*-------------------------------------------------------------------------
 *
 * howdah.c
 *		Settings, hooks, and the way of a statement through the guards.
 *
 * The module gives the master user of a database service what Amazon RDS
 * gives rds_superuser, without superuser rights. Every statement of a user
 * who is not a superuser passes the guards (catalog.c, lock.c, role.c,
 * extension.c, database.c, tablespace.c, event_trigger.c, connection.c,
 * subscription.c) on its way to standard_ProcessUtility; a few that the user
 * may have done are run as the admin role (elevate.c); no function of such a
 * user ever runs with superuser rights (trust.c), and none of them writes to a
 * catalog through a view (catalog_write.c). The platform's roles do not log in
 * from inside of a server (login.c). What holds for all users is that no cancel
 * makes a commit look safer than it is (commit.c), and that nobody but a member
 * of the database confirms one (standby.c), and that a database does not take
 * more storage than it was given (storage.c). Subscriptions that came with the data
 * of another database wait until they are disabled (heritage.c). For what users may have done
 * outside of the database there is the agent of the host (agent.c): exports and
 * imports (s3.c). They read the server's log, and no other file (log.c).
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "agent.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/varlena.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

char	   *howdah_admin_role;
char	   *howdah_superuser_role;
char	   *howdah_protected_roles;
char	   *howdah_protected_databases;
char	   *howdah_extensions;
char	   *howdah_absent_extensions;
bool		howdah_tablespaces;
bool		howdah_superuser_runs_user_code;
bool		howdah_commit_ignores_cancel;

/*
 * Roles that would make their holder the operating-system user, that keep
 * connections or logins of the platform, or that are the platform itself.
 */
static const char default_protected_roles[] =
"rdsadmin, rdsrepladmin, rdsmon, "
"rds_superuser, rds_replication, rds_iam, rds_password, ccm_reader, "
"pg_execute_server_program, pg_read_server_files, pg_write_server_files, "
"pg_use_reserved_connections, pg_maintain";

/*
 * Extensions that give no way to files, programs, raw pages or other users'
 * rights. The list is that of internal/model/extension, which says what is left
 * out, and why; a test compares them. What is not installed does no harm here.
 */
static const char default_extensions[] =
"amcheck, autoinc, aws_commons, aws_s3, bloom, bool_plperl, btree_gin, "
"btree_gist, citext, cube, dblink, dict_int, dict_xsyn, earthdistance, "
"fuzzystrmatch, hll, hstore, hstore_plperl, hypopg, insert_username, "
"intagg, intarray, ip4r, isn, jsonb_plperl, lo, log_fdw, ltree, "
"moddatetime, mysql_fdw, orafce, pg_buffercache, pg_cron, pg_freespacemap, "
"pg_partman, pg_prewarm, pg_qualstats, pg_similarity, pg_stat_statements, "
"pg_trgm, pg_visibility, pg_wait_sampling, pgaudit, pgcrypto, pgrouting, "
"pgrowlocks, pgstattuple, pgtap, plperl, plpgsql, plpgsql_check, pltcl, "
"postgis, postgis_raster, postgis_topology, postgres_fdw, prefix, refint, "
"rum, seg, semver, sslinfo, tablefunc, tcn, tds_fdw, tsm_system_rows, "
"tsm_system_time, unaccent, uuid-ossp, vector";

static ProcessUtility_hook_type next_process_utility;

static void define_settings(void);
static void process_utility(PlannedStmt *pstmt, const char *query,
							bool read_only_tree, ProcessUtilityContext context,
							ParamListInfo params, QueryEnvironment *query_env,
							DestReceiver *dest, QueryCompletion *qc);
static void run_guarded(UtilityCall *call);
static bool guard(UtilityCall *call);

/* module entry point */
void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("howdah must be loaded via shared_preload_libraries")));

	howdah_topology_init();		/* its settings, before the prefix is reserved */
	define_settings();

	/*
	 * A standby panics at a tablespace of tablespace.c unless this is on. It
	 * must stay on when howdah.tablespaces is turned off again, and it lets
	 * nobody but superusers create any.
	 */
	SetConfigOption("allow_in_place_tablespaces", "on", PGC_POSTMASTER,
					PGC_S_OVERRIDE);

	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	howdah_extension_init();
	howdah_extension_query_init();
	howdah_trust_init();
	howdah_commit_init();
	howdah_standby_init();
	howdah_login_init();
	howdah_subscription_init();
	howdah_heritage_init();
	howdah_storage_init();
	howdah_catalog_write_init();
	howdah_slot_init();
	howdah_walsender_init();
	howdah_agent_init();
	MarkGUCPrefixReserved("howdah");
}

/* define the settings; none of them is for users to change */
static void
define_settings(void)
{
	DefineCustomStringVariable("howdah.admin_role",
							   "Superuser as whom the platform acts.",
							   NULL, &howdah_admin_role, "rdsadmin",
							   PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("howdah.superuser_role",
							   "Role whose members have the rights of a master user.",
							   NULL, &howdah_superuser_role, "rds_superuser",
							   PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("howdah.protected_roles",
							   "Roles that only superusers may change or hand out.",
							   NULL, &howdah_protected_roles,
							   default_protected_roles,
							   PGC_SIGHUP, GUC_LIST_INPUT,
							   howdah_check_name_list, NULL, NULL);
	DefineCustomStringVariable("howdah.protected_databases",
							   "Databases that only superusers may change or copy.",
							   NULL, &howdah_protected_databases, "rdsadmin",
							   PGC_SIGHUP, GUC_LIST_INPUT,
							   howdah_check_name_list, NULL, NULL);
	DefineCustomStringVariable("howdah.extensions",
							   "Extensions that users may create.",
							   NULL, &howdah_extensions, default_extensions,
							   PGC_SIGHUP, GUC_LIST_INPUT,
							   howdah_check_name_list, NULL, NULL);
	DefineCustomStringVariable("howdah.absent_extensions",
							   "Extensions that some host of the database does not have.",
							   "They are not created anew: they would not work after a failover. With a version, it is what is newer than that.",
							   &howdah_absent_extensions, "",
							   PGC_SIGHUP, GUC_LIST_INPUT,
							   howdah_check_name_list, NULL, NULL);
	DefineCustomBoolVariable("howdah.tablespaces",
							 "Lets master users create tablespaces, inside the data directory.",
							 "pgBackRest refuses to back up an instance that has any.",
							 &howdah_tablespaces, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("howdah.superuser_runs_user_code",
							 "Lets superusers run functions that other users own.",
							 NULL, &howdah_superuser_runs_user_code, false,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("howdah.commit_ignores_cancel",
							 "A cancel does not end the wait of a commit for synchronous standbys.",
							 NULL, &howdah_commit_ignores_cancel, true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
}

/* check hook: a list of names, read as search_path is */
bool
howdah_check_name_list(char **newval, void **extra, GucSource source)
{
	char	   *copy = pstrdup(*newval);
	List	   *names;
	bool		valid = SplitIdentifierString(copy, ',', &names);

	if (!valid)
		GUC_check_errdetail("List syntax is invalid.");
	list_free(names);
	pfree(copy);
	return valid;
}

/* is this name in that setting's list? */
bool
howdah_listed(const char *list, const char *name)
{
	char	   *copy = pstrdup(list);
	List	   *names;
	ListCell   *lc;
	bool		found = false;

	if (!SplitIdentifierString(copy, ',', &names))
		elog(ERROR, "invalid list \"%s\"", list);
	foreach(lc, names)
		found = found || strcmp(lfirst(lc), name) == 0;
	list_free(names);
	pfree(copy);
	return found;
}

/* ProcessUtility_hook */
static void
process_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *query_env, DestReceiver *dest,
				QueryCompletion *qc)
{
	UtilityCall call = {pstmt, query, read_only_tree, context, params,
	query_env, dest, qc};

	howdah_commit_utility(&call, run_guarded);
}

static void
run_guarded(UtilityCall *call)
{
	howdah_storage_utility(call);
	howdah_slot_utility(call);
	if (!guard(call))
		howdah_run(call);
}

/*
 * Pass a statement through the guards; true if one of them has run it.
 * Transaction statements are left alone: they also come in aborted
 * transactions, where no catalog may be read.
 */
static bool
guard(UtilityCall *call)
{
	howdah_guard_script(call);
	if (IsA(call->pstmt->utilityStmt, TransactionStmt) || superuser())
		return false;
	return howdah_guard_catalog(call) ||
		howdah_guard_lock(call) ||
		howdah_guard_role(call) ||
		howdah_guard_extension(call) ||
		howdah_guard_database(call) ||
		howdah_guard_tablespace(call) ||
		howdah_guard_event_trigger(call) ||
		howdah_guard_connection(call) ||
		howdah_guard_subscription(call);
}

/* run a statement as PostgreSQL, or the next module, would have */
void
howdah_run(UtilityCall *call)
{
	ProcessUtility_hook_type run = next_process_utility ?
		next_process_utility : standard_ProcessUtility;

	run(call->pstmt, call->query, call->read_only_tree, call->context,
		call->params, call->query_env, call->dest, call->qc);
}

/* give the call a statement of its own, which may be changed, and return it */
Node *
howdah_private_copy(UtilityCall *call)
{
	call->pstmt = copyObject(call->pstmt);
	call->read_only_tree = false;
	return call->pstmt->utilityStmt;
}
