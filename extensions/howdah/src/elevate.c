/*-------------------------------------------------------------------------
 *
 * elevate.c
 *		Running something as the admin role on behalf of a user.
 *
 * What the user could have prepared in the session must not matter to what
 * runs elevated: settings that change the meaning of SQL text are pinned,
 * cached plans are thrown away (they may hold a user's function inlined when
 * that was harmless), and trust.c refuses all functions of users meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"

/* how many howdah_run_as_admin are under way */
static int	depth = 0;

static const char *const pinned_settings[][2] = {
	{"array_nulls", "on"},
	{"session_replication_role", "origin"},
	{"standard_conforming_strings", "on"},
	{"transform_null_equals", "off"},
};

static Oid	admin_oid(void);
static void pin_settings(void);
static void run_call(void *arg);

/* is something running as the admin role on behalf of a user? */
bool
howdah_elevated(void)
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
	Oid			admin = admin_oid();
	Oid			save_user;
	int			save_context;
	int			save_settings;

	ResetPlanCache();
	GetUserIdAndSecContext(&save_user, &save_context);
	save_settings = NewGUCNestLevel();
	depth++;
	PG_TRY();
	{
		SetUserIdAndSecContext(admin,
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
