/*-------------------------------------------------------------------------
 *
 * storage.c
 *		What users may still write when their storage is used up.
 *
 * The agent of the member looks how much a database has, and tells the server
 * by howdah_storage_full() when that is all it was given. From then on a
 * statement of a user that could take more is refused, as on a full disk; what
 * gives some back is not: DELETE, TRUNCATE, DROP and VACUUM. The disk itself
 * never gets full by that, and PostgreSQL never stops. The word is kept in
 * shared memory: a server that starts has not been told yet.
 *
 * There are ways to take storage that are no statement's purpose: sorts, the
 * queue of NOTIFY, the texts of pg_stat_statements, WAL that is kept. So there
 * is a second mark, some way above: where the agent says by
 * howdah_storage_level() that it is passed, users do nothing but DROP and
 * TRUNCATE until there is room again.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "parser/analyze.h"
#include "replication/logicalworker.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"

/* how much there is */
typedef enum
{
	STORAGE_LEFT,
	STORAGE_FULL,				/* users may only give some back */
	STORAGE_OVER				/* users may only drop and truncate */
} StorageLevel;

/* functions that write, though who calls them only reads; the same in 15 to 18 */
static const Oid writing_functions[] = {
	F_LO_CREAT, F_LO_CREATE, F_LO_FROM_BYTEA, F_LO_PUT, F_LOWRITE,
	F_LO_TRUNCATE, F_LO_TRUNCATE64,
	3577, 3578,					/* pg_logical_emit_message(), WAL of any length */
	F_PG_CREATE_PHYSICAL_REPLICATION_SLOT, F_PG_CREATE_LOGICAL_REPLICATION_SLOT
};

static shmem_request_hook_type next_shmem_request;
static shmem_startup_hook_type next_shmem_startup;
static ExecutorStart_hook_type next_executor_start;
static post_parse_analyze_hook_type next_post_parse_analyze;

/* a StorageLevel, read without a lock: a statement more or less does not matter */
static volatile int *storage_level;
static bool storage_full_setting;

PG_FUNCTION_INFO_V1(howdah_storage_full);
PG_FUNCTION_INFO_V1(howdah_storage_level);

static void shmem_request(void);
static void shmem_startup(void);
static const char *show_storage_full(void);
static Datum set_level(int level);
static void post_parse_analyze(ParseState *pstate, Query *query,
							   JumbleState *jumble);
static void executor_start(QueryDesc *query, int eflags);
static StorageLevel level_for_user(void);
static bool frees_storage(Node *statement);
static bool takes_storage(Node *statement);
static bool is_full_vacuum(VacuumStmt *statement);
static void refuse(StorageLevel level);

void
howdah_storage_init(void)
{
	DefineCustomBoolVariable("howdah.storage_full",
							 "The storage is used up, and users may only give some back.",
							 "The platform sets it by howdah_storage_full().",
							 &storage_full_setting, false, PGC_INTERNAL,
							 GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							 NULL, NULL, show_storage_full);
	next_shmem_request = shmem_request_hook;
	shmem_request_hook = shmem_request;
	next_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	next_post_parse_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = post_parse_analyze;
}

static void
shmem_request(void)
{
	if (next_shmem_request)
		next_shmem_request();
	RequestAddinShmemSpace(sizeof(int));
}

static void
shmem_startup(void)
{
	bool		found;

	if (next_shmem_startup)
		next_shmem_startup();
	storage_level = ShmemInitStruct("howdah storage", sizeof(int), &found);
	if (!found)
		*storage_level = STORAGE_LEFT;
}

static const char *
show_storage_full(void)
{
	if (storage_level == NULL || *storage_level == STORAGE_LEFT)
		return "off";
	return *storage_level == STORAGE_FULL ? "on" : "over";
}

/* howdah_storage_full(boolean): for the platform alone */
Datum
howdah_storage_full(PG_FUNCTION_ARGS)
{
	return set_level(PG_GETARG_BOOL(0) ? STORAGE_FULL : STORAGE_LEFT);
}

/* howdah_storage_level(integer): a StorageLevel, for the platform alone */
Datum
howdah_storage_level(PG_FUNCTION_ARGS)
{
	return set_level(PG_GETARG_INT32(0));
}

static Datum
set_level(int level)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to say that the storage is full")));
	if (storage_level == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("howdah must be loaded via shared_preload_libraries")));
	if (level < STORAGE_LEFT || level > STORAGE_OVER)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("there is no storage level %d", level)));
	*storage_level = level;
	return (Datum) 0;
}

/*
 * post_parse_analyze_hook: pg_stat_statements keeps the text of a statement in
 * a file before it runs. It is called after us, in any order of libraries.
 */
static void
post_parse_analyze(ParseState *pstate, Query *query, JumbleState *jumble)
{
	if (level_for_user() == STORAGE_OVER &&
		(query->commandType != CMD_UTILITY || !frees_storage(query->utilityStmt)))
		refuse(STORAGE_OVER);
	if (next_post_parse_analyze)
		next_post_parse_analyze(pstate, query, jumble);
}

/* ExecutorStart_hook */
static void
executor_start(QueryDesc *query, int eflags)
{
	PlannedStmt *plan = query->plannedstmt;
	StorageLevel level = level_for_user();

	if (level == STORAGE_OVER ||
		(level == STORAGE_FULL && (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		 (plan->hasModifyingCTE ||
		  (plan->commandType != CMD_SELECT && plan->commandType != CMD_DELETE))))
		refuse(level);
	if (next_executor_start)
		next_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

/* refuse a utility statement that could take storage where there is none */
void
howdah_storage_utility(UtilityCall *call)
{
	Node	   *statement = call->pstmt->utilityStmt;
	StorageLevel level = level_for_user();

	if ((level == STORAGE_OVER && !frees_storage(statement)) ||
		(level == STORAGE_FULL && takes_storage(statement)))
		refuse(level);
}

/*
 * object_access_hook: a function is about to be called, or its expression to be
 * prepared. A plan that was prepared before is ended by the agent.
 */
void
howdah_storage_function(Oid function)
{
	StorageLevel level = level_for_user();

	if (level == STORAGE_LEFT)
		return;
	for (int i = 0; i < lengthof(writing_functions); i++)
		if (function == writing_functions[i])
			refuse(level);
}

/* something of a user's is about to write, or to keep WAL, and is no statement */
void
howdah_storage_write(void)
{
	if (storage_level != NULL && *storage_level != STORAGE_LEFT)
		refuse(*storage_level);
}

/*
 * object_access_hook: a name is looked up in a schema. A worker of a subscription
 * does so once before it writes to a table, and runs no statement. It tries again
 * from where it was, and the publisher keeps what it has not got. Whoever owns a
 * subscription, what it brings is a user's.
 */
void
howdah_storage_namespace(void)
{
	if (storage_level != NULL && *storage_level != STORAGE_LEFT && IsLogicalWorker())
		refuse(STORAGE_FULL);
}

/*
 * Sessions of the platform go on. The session's user counts, not the current
 * one: what runs with the platform's rights for a user takes storage too.
 */
static StorageLevel
level_for_user(void)
{
	if (storage_level == NULL || *storage_level == STORAGE_LEFT ||
		!IsUnderPostmaster || RecoveryInProgress() ||
		!IsTransactionState() || superuser_arg(GetSessionUserId()))
		return STORAGE_LEFT;
	return *storage_level;
}

/* what users may do when nothing else helps; it ends transactions, too */
static bool
frees_storage(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_TransactionStmt:
		case T_DropStmt:
		case T_TruncateStmt:
		case T_DropdbStmt:
		case T_DropOwnedStmt:
		case T_DropSubscriptionStmt:
		case T_ClosePortalStmt:
		case T_DeallocateStmt:
		case T_DiscardStmt:
		case T_UnlistenStmt:
		case T_VariableSetStmt:
		case T_VariableShowStmt:
			return true;
		default:
			return false;
	}
}

/*
 * Whatever is not known to take none does. Plans that EXPLAIN, EXECUTE and
 * cursors run come to the executor, which looks at them again.
 */
static bool
takes_storage(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_DropStmt:
		case T_TruncateStmt:
		case T_DropdbStmt:
		case T_DropOwnedStmt:
		case T_DropRoleStmt:
		case T_DropSubscriptionStmt:
		case T_ExecuteStmt:
		case T_PrepareStmt:
		case T_AlterRoleStmt:
		case T_AlterRoleSetStmt:
		case T_AlterDatabaseSetStmt:
		case T_GrantStmt:
		case T_GrantRoleStmt:
			return false;
		case T_ReindexStmt:
			return true;
		case T_VacuumStmt:
			return is_full_vacuum((VacuumStmt *) statement);
		case T_ExplainStmt:
			return GetCommandLogLevel(statement) == LOGSTMT_DDL;
		default:
			return GetCommandLogLevel(statement) != LOGSTMT_ALL;
	}
}

/* VACUUM FULL writes all of a table anew */
static bool
is_full_vacuum(VacuumStmt *statement)
{
	ListCell   *cell;

	foreach(cell, statement->options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);

		if (strcmp(option->defname, "full") == 0)
			return defGetBoolean(option);
	}
	return false;
}

static void
refuse(StorageLevel level)
{
	if (level == STORAGE_OVER)
		ereport(ERROR,
				(errcode(ERRCODE_DISK_FULL),
				 errmsg("the allocated storage is exceeded by far"),
				 errhint("Have it grow, or free some: only DROP and TRUNCATE work.")));
	ereport(ERROR,
			(errcode(ERRCODE_DISK_FULL),
			 errmsg("the allocated storage is full"),
			 errhint("Have it grow, or free some: DELETE, TRUNCATE, DROP and VACUUM work.")));
}
