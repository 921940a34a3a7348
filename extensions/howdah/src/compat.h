/*-------------------------------------------------------------------------
 *
 * compat.h
 *		What changed between PostgreSQL 15 and 18. The rest of the module
 *		is written in the newest spelling.
 *
 *-------------------------------------------------------------------------
 */
#ifndef HOWDAH_COMPAT_H
#define HOWDAH_COMPAT_H

#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "nodes/replnodes.h"
#include "replication/walsender_private.h"
#include "utils/acl.h"
#include "utils/guc_tables.h"

#if PG_VERSION_NUM < 150000
#error "howdah needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM < 160000

/* 16: one ownership test for all kinds of object */
static inline bool
object_ownercheck(Oid classid, Oid objectid, Oid roleid)
{
	if (classid == DatabaseRelationId)
		return pg_database_ownercheck(objectid, roleid);
	if (classid == NamespaceRelationId)
		return pg_namespace_ownercheck(objectid, roleid);
	Assert(classid == ExtensionRelationId);
	return pg_extension_ownercheck(objectid, roleid);
}

/* 16: one privilege test for all kinds of object */
static inline AclResult
object_aclcheck(Oid classid, Oid objectid, Oid roleid, AclMode mode)
{
	if (classid == DatabaseRelationId)
		return pg_database_aclcheck(objectid, roleid, mode);
	Assert(classid == NamespaceRelationId);
	return pg_namespace_aclcheck(objectid, roleid, mode);
}

/* 16: membership and the right to SET ROLE came apart */
#define member_can_set_role(member, role) is_member_of_role(member, role)

#endif							/* before 16 */

#if PG_VERSION_NUM < 170000

/* 17: backends are known by the number of their PGPROC */
#define MyProcNumber (MyBackendId - 1)

#endif							/* before 17 */

/* 16: the settings are in a hash table, and not in an array */
static inline struct config_generic **
howdah_settings(int *count)
{
#if PG_VERSION_NUM < 160000
	*count = GetNumConfigOptions();
	return get_guc_variables();
#else
	return get_guc_variables(count);
#endif
}

/*
 * 18: the parser of replication commands is reentrant. The command must be one that
 * PostgreSQL has parsed before: NULL stands for what is none.
 */
static inline Node *
howdah_parse_replication(const char *command)
{
	Node	   *parsed = NULL;
#if PG_VERSION_NUM < 180000
	Node	   *others = replication_parse_result;	/* what PostgreSQL has parsed */

	replication_scanner_init(command);
	if (replication_scanner_is_replication_command() && replication_yyparse() == 0)
		parsed = replication_parse_result;
	replication_scanner_finish();
	replication_parse_result = others;
#else
	yyscan_t	scanner;

	replication_scanner_init(command, &scanner);
	if (!replication_scanner_is_replication_command(scanner) ||
		replication_yyparse(&parsed, scanner) != 0)
		parsed = NULL;
	replication_scanner_finish(scanner);
#endif
	return parsed;
}

/* 17: slots can be altered; NULL if that is not what the command is for */
static inline const char *
howdah_altered_slot(Node *command)
{
#if PG_VERSION_NUM >= 170000
	if (IsA(command, AlterReplicationSlotCmd))
		return ((AlterReplicationSlotCmd *) command)->slotname;
#endif
	return NULL;
}

#endif							/* HOWDAH_COMPAT_H */
