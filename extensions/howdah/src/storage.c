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
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/xlog.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/guc.h"

static shmem_request_hook_type next_shmem_request;
static shmem_startup_hook_type next_shmem_startup;
static ExecutorStart_hook_type next_executor_start;

/* read without a lock: a statement more or less does not matter */
static volatile bool *storage_full;
static bool storage_full_setting;

PG_FUNCTION_INFO_V1(howdah_storage_full);

static void shmem_request(void);
static void shmem_startup(void);
static const char *show_storage_full(void);
static void executor_start(QueryDesc *query, int eflags);
static bool applies(void);
static bool takes_storage(Node *statement);
static bool is_full_vacuum(VacuumStmt *statement);
static void refuse(void);

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
}

static void
shmem_request(void)
{
	if (next_shmem_request)
		next_shmem_request();
	RequestAddinShmemSpace(sizeof(bool));
}

static void
shmem_startup(void)
{
	bool		found;

	if (next_shmem_startup)
		next_shmem_startup();
	storage_full = ShmemInitStruct("howdah storage", sizeof(bool), &found);
	if (!found)
		*storage_full = false;
}

static const char *
show_storage_full(void)
{
	return storage_full != NULL && *storage_full ? "on" : "off";
}

/* howdah_storage_full(boolean): for the platform alone */
Datum
howdah_storage_full(PG_FUNCTION_ARGS)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to say that the storage is full")));
	if (storage_full == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("howdah must be loaded via shared_preload_libraries")));
	*storage_full = PG_GETARG_BOOL(0);
	PG_RETURN_VOID();
}

/* ExecutorStart_hook */
static void
executor_start(QueryDesc *query, int eflags)
{
	PlannedStmt *plan = query->plannedstmt;

	if (applies() && (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		(plan->hasModifyingCTE ||
		 (plan->commandType != CMD_SELECT && plan->commandType != CMD_DELETE)))
		refuse();
	if (next_executor_start)
		next_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

/* refuse a utility statement that could take storage where there is none */
void
howdah_storage_utility(UtilityCall *call)
{
	if (applies() && takes_storage(call->pstmt->utilityStmt))
		refuse();
}

/*
 * Sessions of the platform go on. The session's user counts, not the current
 * one: what runs with the platform's rights for a user takes storage too.
 */
static bool
applies(void)
{
	return storage_full != NULL && *storage_full &&
		IsUnderPostmaster && !RecoveryInProgress() &&
		!superuser_arg(GetSessionUserId());
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
refuse(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DISK_FULL),
			 errmsg("the allocated storage is full"),
			 errhint("Have it grow, or free some: DELETE, TRUNCATE, DROP and VACUUM work.")));
}
