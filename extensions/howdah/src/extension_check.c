/*-------------------------------------------------------------------------
 *
 * extension_check.c
 *		What a user's statement on extensions must not be. Each function
 *		returns, or raises the error.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "catalog/namespace.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "compat.h"
#include "extension_check.h"
#include "extension_script.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"

/* refuse extensions that are not in the list */
void
howdah_check_extension_allowed(const char *name)
{
	if (!howdah_listed(howdah_extensions, name))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("extension \"%s\" is not supported on this instance", name),
				 errdetail("It is not in the list of extensions that users may create."),
				 errhint("For the list, see SHOW howdah.extensions.")));
}

/* refuse extensions that would not work after a failover to some host */
void
howdah_check_extension_everywhere(const char *name)
{
	if (howdah_listed(howdah_absent_extensions, name))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("extension \"%s\" is not installed on all hosts of this database", name),
				 errdetail("It would not work after a failover."),
				 errhint("Install it on the hosts that lack it: howdah status names them.")));
}

/*
 * Versions are numbers. "unpackaged" and "ANY", which some extensions have, stand
 * for objects that are there: a script that starts from these takes a user's own
 * objects for the extension's, and makes C functions of them that the user owns.
 * PostGIS has more such versions, and comes in the newest one alone.
 */
void
howdah_check_extension_version(const char *name, const char *version, const char *newest)
{
	if (version == NULL ||
		(howdah_is_postgis(name) ? newest != NULL && strcmp(version, newest) == 0 :
		 version[0] >= '0' && version[0] <= '9'))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied for version \"%s\" of extension \"%s\"", version, name),
			 errhint("Ask for none: then it is the newest one.")));
}

/* is it the user's? until the transaction ends no other one gets its name */
void
howdah_check_extension_owner(const char *name)
{
	Oid			extension = get_extension_oid(name, false);

	if (!object_ownercheck(ExtensionRelationId, extension, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_EXTENSION, name);
	LockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock);
	if (get_extension_oid(name, false) != extension)
		howdah_check_extension_owner(name);
}

/* as PostgreSQL asks of users who create trusted extensions */
void
howdah_check_extension_database(const char *name)
{
	if (object_aclcheck(DatabaseRelationId, MyDatabaseId, GetUserId(),
						ACL_CREATE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for extension \"%s\"", name),
				 errhint("Must have CREATE privilege on current database.")));
}

/*
 * The system's schemas are searched before all others by everyone, superusers
 * included, so nothing is added there for users.
 */
void
howdah_check_extension_not_system_schema(const char *name)
{
	if (strncmp(name, "pg_", 3) == 0 || strcmp(name, "information_schema") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to place an extension in schema \"%s\"",
						name)));
}

/*
 * May the user create there? public is everybody's as far as extensions go.
 * Until the transaction ends no other schema gets the name (see lock.c).
 */
void
howdah_check_extension_create_in_schema(const char *name)
{
	Oid			schema = get_namespace_oid(name, true);

	if (!OidIsValid(schema) || strcmp(name, "public") == 0)
		return;
	if (object_aclcheck(NamespaceRelationId, schema, GetUserId(),
						ACL_CREATE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, name);
	LockDatabaseObject(NamespaceRelationId, schema, 0, AccessShareLock);
	if (get_namespace_oid(name, true) != schema)
		howdah_check_extension_create_in_schema(name);
}
