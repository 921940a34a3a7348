/*-------------------------------------------------------------------------
 *
 * trust.c
 *		No function of a user runs while something has superuser rights.
 *
 * A user who is not a superuser owns functions, operators, triggers and
 * databases with settings like search_path, all of which can make somebody
 * else's statement call a function of that user. With the function manager's
 * hook such a call is refused in the platform's own sessions, in what this
 * module or PostgreSQL runs as a superuser for a user (elevate.c), and inside
 * of SECURITY DEFINER functions of superusers. Event triggers of users are
 * passed over there instead, so that nobody can hinder the platform.
 *
 * It makes no difference whether the user's function is SECURITY DEFINER. Its
 * rights would be its owner's alone, but what it sets by set_config, such as
 * search_path, is there when the caller goes on with all of its rights. So the
 * current user says nothing about what may run: what is under way does.
 *
 * Where PostgreSQL itself confines code to a user (index expressions during
 * maintenance, materialized views) it undoes what was set: that is not touched.
 *
 * The same file shields the sessions of the platform's logins that are not
 * superusers (replication, monitoring) from pg_terminate_backend.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

/* the calls of SECURITY DEFINER functions of superusers that are under way */
static List *definers = NIL;

static needs_fmgr_hook_type next_needs_fmgr_hook;
static fmgr_hook_type next_fmgr_hook;

static bool needs_check(Oid function);
static void check_call(FmgrHookEventType event, FmgrInfo *flinfo, Datum *arg);
static void note_definer(FmgrHookEventType event, FmgrInfo *flinfo);
static bool is_superusers_definer(Oid function);
static void refuse_call(Oid function);
static bool in_platform_session(void);
static bool is_lifted(void);
static bool refuses(void);
static Datum do_nothing(PG_FUNCTION_ARGS);
static void at_transaction_event(XactEvent event, void *arg);
static void shield_session(void);

/* install the hooks */
void
howdah_trust_init(void)
{
	next_needs_fmgr_hook = needs_fmgr_hook;
	needs_fmgr_hook = needs_check;
	next_fmgr_hook = fmgr_hook;
	fmgr_hook = check_call;
	RegisterXactCallback(at_transaction_event, NULL);
}

/* is the owner of this function no superuser? Tells its result type too. */
bool
howdah_is_user_code(Oid function, Oid *rettype)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	*rettype = ((Form_pg_proc) GETSTRUCT(tuple))->prorettype;
	ReleaseSysCache(tuple);
	return !superuser_arg(owner);
}

/*
 * needs_fmgr_hook: called when a function is looked up, and by the planner
 * before it inlines one. The answer must hold until the call. It does where
 * superuser rights come between statements, or with what elevate.c runs, which
 * drops cached plans; event triggers are looked up for every call. Inside a
 * SECURITY DEFINER function of a superuser a plan may be older than the
 * rights: such functions must set their search_path, here as anywhere.
 *
 * SECURITY DEFINER functions are not asked for: the hook sees all of them.
 */
static bool
needs_check(Oid function)
{
	Oid			rettype;

	if (next_needs_fmgr_hook && next_needs_fmgr_hook(function))
		return true;
	if (IsBinaryUpgrade)
		return false;
	if (!howdah_is_user_code(function, &rettype))
		return howdah_is_connecting(function) || howdah_guards_arguments(function);
	return rettype == EVENT_TRIGGEROID || refuses();
}

/* fmgr_hook: called before and after the calls of these functions */
static void
check_call(FmgrHookEventType event, FmgrInfo *flinfo, Datum *arg)
{
	Oid			rettype;

	if (flinfo->fn_addr == howdah_connect ||
		flinfo->fn_addr == howdah_call_guarded)
		 /* has been replaced at its first call */ ;
	else if (event == FHET_START && !IsBinaryUpgrade &&
			 !howdah_is_user_code(flinfo->fn_oid, &rettype))
	{
		if (howdah_is_connecting(flinfo->fn_oid))
			flinfo->fn_addr = howdah_connect;
		else if (howdah_guards_arguments(flinfo->fn_oid))
			flinfo->fn_addr = howdah_call_guarded;
	}
	else if (event == FHET_START && !IsBinaryUpgrade)
	{
		if (rettype == EVENT_TRIGGEROID &&
			(is_lifted() || in_platform_session()))
			flinfo->fn_addr = do_nothing;
		else if (refuses())
			refuse_call(flinfo->fn_oid);
	}
	if (next_fmgr_hook)
		next_fmgr_hook(event, flinfo, arg);
	note_definer(event, flinfo);
}

/* object_access_hook: what is called without the function manager, as aggregates */
void
howdah_check_execute(Oid function)
{
	Oid			rettype;

	if (is_lifted() && howdah_is_user_code(function, &rettype))
		refuse_call(function);
}

/*
 * Keep track of the SECURITY DEFINER functions of superusers. Calls end in the
 * order in which they began, by an error too, and nothing here fails then.
 */
static void
note_definer(FmgrHookEventType event, FmgrInfo *flinfo)
{
	if (event == FHET_START)
	{
		if (is_superusers_definer(flinfo->fn_oid))
		{
			MemoryContext save = MemoryContextSwitchTo(TopMemoryContext);

			definers = lappend(definers, flinfo);
			MemoryContextSwitchTo(save);
		}
	}
	else if (definers != NIL && llast(definers) == flinfo)
		definers = list_delete_last(definers);
}

static bool
is_superusers_definer(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc form;
	bool		found;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	form = (Form_pg_proc) GETSTRUCT(tuple);
	found = form->prosecdef && superuser_arg(form->proowner);
	ReleaseSysCache(tuple);
	return found;
}

static void
refuse_call(Oid function)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("function %s may not run with superuser rights",
					format_procedure_qualified(function)),
			 errdetail("Its owner is not a superuser."),
			 is_lifted() ? 0 :
			 errhint("If you trust it, turn on howdah.superuser_runs_user_code.")));
}

/*
 * Is this a session of the platform, or something that runs with superuser
 * rights in a user's session? The current user alone does not tell: a session
 * that took another role can give it up again, and so could a user's function
 * in it.
 */
static bool
in_platform_session(void)
{
	return superuser() || superuser_arg(GetSessionUserId()) ||
		superuser_arg(MyProc->roleId);
}

/* has something the rights of a superuser that a user's session lent them to? */
static bool
is_lifted(void)
{
	return howdah_confined() || definers != NIL;
}

/*
 * Are functions of users refused now? In a security-restricted operation
 * PostgreSQL undoes what they set, and gives them no way back.
 */
static bool
refuses(void)
{
	return is_lifted() ||
		(!howdah_superuser_runs_user_code && in_platform_session() &&
		 (superuser() || !InSecurityRestrictedOperation()));
}

/* stands in for an event trigger's function */
static Datum
do_nothing(PG_FUNCTION_ARGS)
{
	PG_RETURN_VOID();
}

/* XactCallback */
static void
at_transaction_event(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT)
		shield_session();
	else if (event == XACT_EVENT_ABORT)
	{
		list_free(definers);
		definers = NIL;
	}
}

/*
 * Of use in the transaction in which a session authenticates. pg_signal_backend allows to end any session that is not a
 * superuser's, by PGPROC.roleId; show the admin role there for the platform's
 * other logins, or a master user could keep cutting off the standbys.
 */
static void
shield_session(void)
{
	static bool done = false;
	Oid			admin;

	if (done || MyProc == NULL || !OidIsValid(MyProc->roleId))
		return;
	done = true;
	if (superuser_arg(MyProc->roleId) || !howdah_role_is_protected(MyProc->roleId))
		return;
	admin = get_role_oid(howdah_admin_role, true);
	if (OidIsValid(admin))
		MyProc->roleId = admin;
}
