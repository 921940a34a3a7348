/*-------------------------------------------------------------------------
 *
 * event_trigger.c
 *		Event triggers for master users.
 *
 * PostgreSQL keeps these to superusers since their functions run in
 * everybody's sessions. Here a master user may create one on a function that
 * a user owns; trust.c sees to it that such a function does nothing in
 * sessions of the platform and while something runs with superuser rights,
 * be it that PostgreSQL gives these to the script of a trusted extension.
 * Only its SET clauses would take effect there, and could fail, since they
 * come before the function manager's hook: such functions may have none.
 *
 * The event trigger itself belongs to the admin role, for PostgreSQL gives it
 * to superusers only, and a dump with another owner could not be restored
 * (pg_upgrade makes one). Whose it is, is told by its function.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/htup_details.h"
#include "catalog/pg_event_trigger.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "miscadmin.h"
#include "parser/parse_func.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static bool is_users_function(Oid function);
static bool has_settings(Oid function);
static bool sets_something(List *options);
static void refuse_settings(void);
static void check_create_function(CreateFunctionStmt *stmt);
static void check_alter_function(AlterFunctionStmt *stmt);
static bool is_users_trigger(const char *name);
static bool are_users_triggers(List *names);
static bool run_if(UtilityCall *call, bool allowed);
static bool guard_create(UtilityCall *call);

/* guard: see the head of this file */
bool
howdah_guard_event_trigger(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	switch (nodeTag(node))
	{
		case T_CreateFunctionStmt:
			check_create_function((CreateFunctionStmt *) node);
			return false;
		case T_AlterFunctionStmt:
			check_alter_function((AlterFunctionStmt *) node);
			return false;
		case T_CreateEventTrigStmt:
			return guard_create(call);
		case T_AlterEventTrigStmt:
			return run_if(call,
						  is_users_trigger(((AlterEventTrigStmt *) node)->trigname));
		case T_DropStmt:
			return ((DropStmt *) node)->removeType == OBJECT_EVENT_TRIGGER &&
				run_if(call, are_users_triggers(((DropStmt *) node)->objects));
		case T_RenameStmt:
			return ((RenameStmt *) node)->renameType == OBJECT_EVENT_TRIGGER &&
				run_if(call,
					   is_users_trigger(strVal(((RenameStmt *) node)->object)));
		case T_CommentStmt:
			return ((CommentStmt *) node)->objtype == OBJECT_EVENT_TRIGGER &&
				run_if(call,
					   is_users_trigger(strVal(((CommentStmt *) node)->object)));
		default:
			return false;
	}
}

/*
 * Run a statement between the event triggers that are for it, where PostgreSQL
 * would have them inside of what run does with superuser rights. So they run as
 * the user, who sees CREATE EXTENSION as any other statement: the triggers for
 * its start before anything is checked, the others when nothing of the rights is
 * left.
 */
void
howdah_run_between_triggers(UtilityCall *call, void (*run) (UtilityCall *call))
{
	Node	   *node = call->pstmt->utilityStmt;
	UtilityCall inner = *call;
	bool		has_state;

	if (call->context == PROCESS_UTILITY_SUBCOMMAND)
	{
		run(call);
		return;
	}
	/* for PostgreSQL, a part of a statement fires no event triggers */
	inner.context = PROCESS_UTILITY_SUBCOMMAND;
	has_state = EventTriggerBeginCompleteQuery();
	PG_TRY();
	{
		EventTriggerDDLCommandStart(node);
		run(&inner);
		EventTriggerSQLDrop(node);
		EventTriggerDDLCommandEnd(node);
	}
	PG_FINALLY();
	{
		if (has_state)
			EventTriggerEndCompleteQuery();
	}
	PG_END_TRY();
}

/* run the statement as the admin role, or leave it to PostgreSQL to refuse */
static bool
run_if(UtilityCall *call, bool allowed)
{
	if (!allowed || !howdah_has_superuser_role())
		return false;
	howdah_run_call_as_admin(call);
	return true;
}

/* CREATE EVENT TRIGGER */
static bool
guard_create(UtilityCall *call)
{
	CreateEventTrigStmt *stmt = (CreateEventTrigStmt *) call->pstmt->utilityStmt;
	Oid			function;

	if (!howdah_has_superuser_role())
		return false;
	function = LookupFuncName(stmt->funcname, 0, NULL, false);
	if (object_aclcheck(DatabaseRelationId, MyDatabaseId, GetUserId(),
						ACL_CREATE) != ACLCHECK_OK ||
		!is_users_function(function))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to create event trigger \"%s\"",
						stmt->trigname),
				 errhint("Must have CREATE privilege on current database and own the function, which must return event_trigger.")));
	if (has_settings(function))
		refuse_settings();

	/* by its full name, so that the function found is the one that was checked */
	stmt = (CreateEventTrigStmt *) howdah_private_copy(call);
	stmt->funcname =
		list_make2(makeString(get_namespace_name(get_func_namespace(function))),
				   makeString(get_func_name(function)));
	return run_if(call, true);
}

/* is this an event trigger's function that the current user may change? */
static bool
is_users_function(Oid function)
{
	HeapTuple	tuple;
	Oid			owner;
	Oid			rettype;

	if (!howdah_is_user_code(function, &rettype) || rettype != EVENT_TRIGGEROID)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);
	return has_privs_of_role(GetUserId(), owner);
}

/* has this function SET clauses? */
static bool
has_settings(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		found;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	found = !heap_attisnull(tuple, Anum_pg_proc_proconfig, NULL);
	ReleaseSysCache(tuple);
	return found;
}

static bool
sets_something(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
		if (strcmp(lfirst_node(DefElem, lc)->defname, "set") == 0)
			return true;
	return false;
}

static void
refuse_settings(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("functions of event triggers cannot have SET clauses")));
}

/* CREATE FUNCTION ... RETURNS event_trigger ... SET */
static void
check_create_function(CreateFunctionStmt *stmt)
{
	if (sets_something(stmt->options) && stmt->returnType != NULL &&
		LookupTypeNameOid(NULL, stmt->returnType, true) == EVENT_TRIGGEROID)
		refuse_settings();
}

/* ALTER FUNCTION ... SET */
static void
check_alter_function(AlterFunctionStmt *stmt)
{
	Oid			function;

	if (!sets_something(stmt->actions))
		return;
	function = LookupFuncWithArgs(stmt->objtype, stmt->func, true);
	if (OidIsValid(function) && get_func_rettype(function) == EVENT_TRIGGEROID)
		refuse_settings();
}

static bool
is_users_trigger(const char *name)
{
	HeapTuple	tuple = SearchSysCache1(EVENTTRIGGERNAME, CStringGetDatum(name));
	Oid			function;

	if (!HeapTupleIsValid(tuple))
		return false;
	function = ((Form_pg_event_trigger) GETSTRUCT(tuple))->evtfoid;
	ReleaseSysCache(tuple);
	return is_users_function(function);
}

static bool
are_users_triggers(List *names)
{
	ListCell   *lc;

	foreach(lc, names)
		if (!is_users_trigger(strVal(lfirst(lc))))
			return false;
	return true;
}
