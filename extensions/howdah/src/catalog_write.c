/*-------------------------------------------------------------------------
 *
 * catalog_write.c
 *		Nobody but superusers writes to a system catalog, through a view neither.
 *
 * PostgreSQL refuses that to whoever is no superuser, even to members of
 * pg_write_all_data, which master users hand out. But that role may write to
 * all views, those of pg_catalog included, and what a view leads to is written
 * with the rights of the view's owner. Some of these views are simple enough
 * for UPDATE: by pg_group one could exchange the names of
 * pg_execute_server_program and of rds_iam, and be given the first.
 *
 * So the rights of the current user count here, whoever owns the view. Row
 * locks (SELECT ... FOR UPDATE) are writes.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "catalog/catalog.h"
#include "executor/executor.h"
#include "extension_script.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

#define WRITING (ACL_INSERT | ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE)

static ExecutorCheckPerms_hook_type next_check_perms;

static bool check_write(Oid relation, AclMode required, bool raise);

/* ExecutorCheckPerms_hook: each time that a plan begins, however old it is */
#if PG_VERSION_NUM < 160000
static bool
check_perms(List *range_table, bool raise)
{
	ListCell   *lc;

	foreach(lc, range_table)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, lc);

		if (entry->rtekind == RTE_RELATION &&
			!check_write(entry->relid, entry->requiredPerms, raise))
			return false;
	}
	return next_check_perms == NULL || next_check_perms(range_table, raise);
}
#else
static bool
check_perms(List *range_table, List *permissions, bool raise)
{
	ListCell   *lc;

	foreach(lc, permissions)
	{
		RTEPermissionInfo *entry = lfirst_node(RTEPermissionInfo, lc);

		if (!check_write(entry->relid, entry->requiredPerms, raise))
			return false;
	}
	return next_check_perms == NULL ||
		next_check_perms(range_table, permissions, raise);
}
#endif

void
howdah_catalog_write_init(void)
{
	next_check_perms = ExecutorCheckPerms_hook;
	ExecutorCheckPerms_hook = check_perms;
}

/* may the current user do this to that relation, as far as this file goes? */
static bool
check_write(Oid relation, AclMode required, bool raise)
{
	howdah_check_script_relation(relation, (required & WRITING) != 0);
	if ((required & WRITING) == 0 || !IsCatalogRelationOid(relation))
		return true;
	/* the script of an extension does not write to roles and databases either */
	if (superuser() && !(howdah_in_script() && IsSharedRelation(relation)))
		return true;
	if (raise)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s", get_rel_name(relation)),
				 errdetail("It is a system catalog.")));
	return false;
}
