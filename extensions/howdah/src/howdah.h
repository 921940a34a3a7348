/*-------------------------------------------------------------------------
 *
 * howdah.h
 *		What the files of the module share.
 *
 * The rule that all of them keep: a superuser is never restricted, and
 * nobody else becomes one, runs a program as the operating-system user, or
 * changes what belongs to the platform.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOWDAH_H
#define HOWDAH_H

#include "postgres.h"

#include "access/htup.h"
#include "compat.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/guc.h"

/* The arguments of ProcessUtility, to be handed on as they are. */
typedef struct UtilityCall
{
	PlannedStmt *pstmt;
	const char *query;
	bool		read_only_tree;
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *query_env;
	DestReceiver *dest;
	QueryCompletion *qc;
} UtilityCall;

/* GUCs, described where they are defined (howdah.c) */
extern char *howdah_admin_role;
extern char *howdah_superuser_role;
extern char *howdah_protected_roles;
extern char *howdah_protected_databases;
extern char *howdah_extensions;
extern char *howdah_absent_extensions;
extern bool howdah_tablespaces;
extern bool howdah_superuser_runs_user_code;
extern bool howdah_commit_ignores_cancel;

/* howdah.c */
extern void howdah_run(UtilityCall *call);
extern Node *howdah_private_copy(UtilityCall *call);
extern bool howdah_listed(const char *list, const char *name);
extern bool howdah_check_name_list(char **newval, void **extra, GucSource source);

/* elevate.c: running something with the rights of a superuser */
extern void howdah_run_as_admin(void (*run) (void *arg), void *arg);
extern void howdah_run_call_as_admin(UtilityCall *call);
extern void howdah_run_confined(void (*run) (void *arg), void *arg);
extern void howdah_lend(Oid role, void (*run) (void *arg), void *arg);
extern bool howdah_confined(void);
extern bool howdah_has_superuser_role(void);

/*
 * The guards. Each is called for statements of users who are not
 * superusers, raises an error for what they may not do, and returns true if
 * it has run the statement itself.
 */
extern bool howdah_guard_role(UtilityCall *call);
extern bool howdah_guard_extension(UtilityCall *call);
extern void howdah_guard_script(UtilityCall *call);
extern bool howdah_in_script(void);
extern bool howdah_guard_database(UtilityCall *call);
extern bool howdah_guard_tablespace(UtilityCall *call);
extern bool howdah_guard_event_trigger(UtilityCall *call);
extern void howdah_run_between_triggers(UtilityCall *call,
										void (*run) (UtilityCall *call));
extern bool howdah_guard_connection(UtilityCall *call);
extern bool howdah_guard_subscription(UtilityCall *call);
extern bool howdah_guard_catalog(UtilityCall *call);
extern bool howdah_guard_lock(UtilityCall *call);

/* catalog_write.c */
extern void howdah_catalog_write_init(void);

/* role.c */
extern bool howdah_role_is_protected(Oid role);
extern bool howdah_is_protected_name(const char *name);
extern RoleSpec *howdah_named_role(Oid role);

/* extension.c, trust.c: further hooks */
extern void howdah_extension_init(void);
extern void howdah_extension_query_init(void);
extern void howdah_trust_init(void);
extern bool howdah_is_user_code(Oid function, Oid *rettype);
extern void howdah_check_execute(Oid function);

/* connection.c: what trust.c puts in the place of some functions */
extern bool howdah_is_connecting(Oid function);
extern Datum howdah_connect(PG_FUNCTION_ARGS);
extern char *howdah_function_library(HeapTuple proc);
extern char *howdah_function_text(HeapTuple proc, AttrNumber attribute);

/* argument.c: the same */
extern bool howdah_guards_arguments(Oid function);
extern Datum howdah_call_guarded(PG_FUNCTION_ARGS);

/* subscription.c */
extern void howdah_subscription_init(void);
extern void howdah_heritage_init(void);

/* cron.c */
extern void howdah_check_no_jobs(const char *role, const char *action);

/* login.c */
extern void howdah_login_init(void);

/* standby.c */
extern void howdah_standby_init(void);
extern bool howdah_is_members_name(const char *name);

/* slot.c, walsender.c: logical replication of users */
extern void howdah_slot_init(void);
extern void howdah_slot_utility(UtilityCall *call);
extern void howdah_walsender_init(void);

/* storage.c */
extern void howdah_storage_init(void);
extern void howdah_storage_utility(UtilityCall *call);
extern void howdah_storage_function(Oid function);
extern void howdah_storage_namespace(void);
extern void howdah_storage_write(void);

/* topology.c */
extern void howdah_topology_init(void);
extern bool howdah_in_multi_az_cluster(void);

/* commit.c */
extern void howdah_commit_init(void);
extern void howdah_commit_utility(UtilityCall *call,
								  void (*run) (UtilityCall *call));

#endif							/* HOWDAH_H */
