/*-------------------------------------------------------------------------
 *
 * elevate.c
 *		Running something with the rights of a superuser on behalf of a user.
 *
 * Either this module makes the admin role the current user, or PostgreSQL
 * itself takes the rights: it runs the scripts of trusted extensions as the
 * bootstrap superuser. Both are confined: what the user could have prepared in
 * the session must not matter to what runs so. Settings that change the meaning
 * of SQL text are pinned, cached plans are thrown away (they may hold a user's
 * function inlined when that was harmless), and nothing that a user wrote runs
 * meanwhile (trust.c). Whether that is so is counted here, and not told by the
 * current user: a SECURITY DEFINER function is another one for as long as it
 * runs, but what it does to the session stays.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"

/* how many confined runs are under way */
static int	depth = 0;

/* parallel workers would not know of the depth */
static const char *const pinned_settings[][2] = {
	{"array_nulls", "on"},
	{"default_table_access_method", "heap"},
	{"max_parallel_maintenance_workers", "0"},
	{"max_parallel_workers_per_gather", "0"},
	{"row_security", "on"},
	{"session_replication_role", "origin"},
	{"standard_conforming_strings", "on"},
	{"transform_null_equals", "off"},
};

static Oid	admin_oid(void);
static void run_confined(Oid user, void (*run) (void *arg), void *arg);
static void pin_settings(void);
static void run_call(void *arg);

/* is something running that a user must have no part in? */
bool
howdah_confined(void)
{
	return depth > 0;
}

/* does the current user have the rights of the master users' role? */
bool
howdah_has_superuser_role(void)
{
	Oid			role = get_role_oid(howdah_superuser_role, true);

	return OidIsValid(role) && has_privs_of_role(GetUserId(), role);
}

/* call run(arg) as the admin role; user and settings are restored in any case */
void
howdah_run_as_admin(void (*run) (void *arg), void *arg)
{
	run_confined(admin_oid(), run, arg);
}

/* call run(arg), in which PostgreSQL itself takes the rights of a superuser */
void
howdah_run_confined(void (*run) (void *arg), void *arg)
{
	run_confined(InvalidOid, run, arg);
}

/*
 * Call run(arg), which is a function of PostgreSQL's own, with the rights of that
 * role. It may be in the middle of a statement, and what the session has set is
 * the caller's affair.
 */
void
howdah_lend(Oid role, void (*run) (void *arg), void *arg)
{
	Oid			save_user;
	int			save_context;

	GetUserIdAndSecContext(&save_user, &save_context);
	depth++;
	PG_TRY();
	{
		SetUserIdAndSecContext(role,
							   save_context | SECURITY_LOCAL_USERID_CHANGE);
		run(arg);
	}
	PG_FINALLY();
	{
		depth--;
		SetUserIdAndSecContext(save_user, save_context);
	}
	PG_END_TRY();
}

/* call run(arg), as that user if one is given */
static void
run_confined(Oid user, void (*run) (void *arg), void *arg)
{
	Oid			save_user;
	int			save_context;
	int			save_settings;

	ResetPlanCache();
	GetUserIdAndSecContext(&save_user, &save_context);
	save_settings = NewGUCNestLevel();
	depth++;
	PG_TRY();
	{
		if (OidIsValid(user))
			SetUserIdAndSecContext(user,
								   save_context | SECURITY_LOCAL_USERID_CHANGE);
		pin_settings();
		run(arg);
	}
	PG_FINALLY();
	{
		depth--;
		SetUserIdAndSecContext(save_user, save_context);
	}
	PG_END_TRY();
	AtEOXact_GUC(true, save_settings);
}

/* run a statement as the admin role */
void
howdah_run_call_as_admin(UtilityCall *call)
{
	howdah_run_as_admin(run_call, call);
}

static void
run_call(void *arg)
{
	howdah_run((UtilityCall *) arg);
}

/* the admin role, which must be what it is said to be */
static Oid
admin_oid(void)
{
	Oid			admin = get_role_oid(howdah_admin_role, true);

	if (!OidIsValid(admin) || !superuser_arg(admin))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("role \"%s\" is not a superuser", howdah_admin_role),
				 errhint("howdah.admin_role must name the superuser of the platform.")));
	return admin;
}

/* settings by which a user could change what a fixed text means */
static void
pin_settings(void)
{
	for (int i = 0; i < lengthof(pinned_settings); i++)
		(void) set_config_option(pinned_settings[i][0], pinned_settings[i][1],
								 PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
}
