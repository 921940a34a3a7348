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
#include "utils/acl.h"

#if PG_VERSION_NUM < 150000
#error "howdah needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM < 160000

/* 16: one ownership test for all kinds of object */
static inline bool
object_ownercheck(Oid classid, Oid objectid, Oid roleid)
{
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

#endif							/* HOWDAH_COMPAT_H */
