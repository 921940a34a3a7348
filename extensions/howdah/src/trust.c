/*-------------------------------------------------------------------------
 *
 * trust.c
 *		No function of a user runs with superuser rights.
 *
 * A user who is not a superuser owns functions, operators, triggers and
 * databases with settings like search_path, all of which can make somebody
 * else's statement call a function of that user. With the function manager's
 * hook such a call is refused when the current user is a superuser, or could
 * be again by giving up a role: in the platform's own sessions, in extension
 * scripts, and in whatever this module runs as the admin role. In the
 * platform's sessions, event triggers of users are passed over instead, so
 * that nobody can hinder the platform.
 *
 * User code that is confined to its owner's rights (index expressions during
 * maintenance, SECURITY DEFINER functions) is harmless and not touched.
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
#include "utils/regproc.h"
#include "utils/syscache.h"

static needs_fmgr_hook_type next_needs_fmgr_hook;
static fmgr_hook_type next_fmgr_hook;

static bool needs_check(Oid function);
static void check_call(FmgrHookEventType event, FmgrInfo *flinfo, Datum *arg);
static void refuse_call(Oid function);
static bool in_platform_session(void);
static bool has_superuser_within_reach(void);
static Datum do_nothing(PG_FUNCTION_ARGS);
static void shield_session(XactEvent event, void *arg);

/* install the hooks */
void
howdah_trust_init(void)
{
	next_needs_fmgr_hook = needs_fmgr_hook;
	needs_fmgr_hook = needs_check;
	next_fmgr_hook = fmgr_hook;
	fmgr_hook = check_call;
	RegisterXactCallback(shield_session, NULL);
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
 * superuser rights come between statements, or by howdah_run_as_admin, which
 * drops cached plans; event triggers are looked up for every call. Inside a
 * SECURITY DEFINER function of a superuser a plan may be older than the
 * rights: such functions must set their search_path, here as anywhere.
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
		return howdah_is_connecting(function);
	return rettype == EVENT_TRIGGEROID || has_superuser_within_reach();
}

/* fmgr_hook: called before and after the calls of these functions */
static void
check_call(FmgrHookEventType event, FmgrInfo *flinfo, Datum *arg)
{
	Oid			rettype;

	if (event == FHET_START && !IsBinaryUpgrade &&
		!howdah_is_user_code(flinfo->fn_oid, &rettype))
	{
		if (howdah_is_connecting(flinfo->fn_oid))
			flinfo->fn_addr = howdah_connect;
	}
	else if (event == FHET_START && !IsBinaryUpgrade)
	{
		if (rettype == EVENT_TRIGGEROID && in_platform_session())
			flinfo->fn_addr = do_nothing;
		else if (has_superuser_within_reach() &&
				 (howdah_elevated() || !howdah_superuser_runs_user_code))
			refuse_call(flinfo->fn_oid);
	}
	if (next_fmgr_hook)
		next_fmgr_hook(event, flinfo, arg);
}

static void
refuse_call(Oid function)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("function %s may not run with superuser rights",
					format_procedure_qualified(function)),
			 errdetail("Its owner is not a superuser."),
			 howdah_elevated() ? 0 :
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

/*
 * Has the code that runs now superuser rights, or could it get them by RESET
 * ROLE? PostgreSQL refuses that where it has confined code to a user.
 */
static bool
has_superuser_within_reach(void)
{
	return superuser() ||
		(!InLocalUserIdChange() && !InSecurityRestrictedOperation() &&
		 in_platform_session());
}

/* stands in for an event trigger's function */
static Datum
do_nothing(PG_FUNCTION_ARGS)
{
	PG_RETURN_VOID();
}

/*
 * Transaction callback, of use in the transaction in which a session
 * authenticates. pg_signal_backend allows to end any session that is not a
 * superuser's, by PGPROC.roleId; show the admin role there for the platform's
 * other logins, or a master user could keep cutting off the standbys.
 */
static void
shield_session(XactEvent event, void *arg)
{
	static bool done = false;
	Oid			admin;

	if (done || event != XACT_EVENT_PRE_COMMIT ||
		MyProc == NULL || !OidIsValid(MyProc->roleId))
		return;
	done = true;
	if (superuser_arg(MyProc->roleId) || !howdah_role_is_protected(MyProc->roleId))
		return;
	admin = get_role_oid(howdah_admin_role, true);
	if (OidIsValid(admin))
		MyProc->roleId = admin;
}
