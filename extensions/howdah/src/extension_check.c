/*-------------------------------------------------------------------------
 *
 * extension_check.c
 *		What a user's statement on extensions must not be. Each function
 *		returns, or raises the error.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <ctype.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
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
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/varlena.h"

static int	compare_versions(const char *a, const char *b);
static const char *next_word(const char *text, size_t *length);

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
 * Refuse a version that the library of some host may be too old for. What came to
 * it is only known once the scripts have run: by way of which versions, and with
 * which other extensions. "before" is what it was, or NULL if it is new.
 */
void
howdah_check_extension_newest(Oid extension, const char *before)
{
	char	   *name = get_extension_name(extension);
	char	   *version = howdah_extension_version(extension);
	char	   *copy = pstrdup(howdah_absent_extensions);
	List	   *entries;
	ListCell   *lc;

	if (name == NULL || version == NULL || (before != NULL && strcmp(before, version) == 0))
		return;
	if (!SplitIdentifierString(copy, ',', &entries))
		elog(ERROR, "invalid list \"%s\"", howdah_absent_extensions);
	foreach(lc, entries)
	{
		const char *entry = lfirst(lc);
		size_t		length = strlen(name);

		if (strncmp(entry, name, length) != 0 || entry[length] != ' ' ||
			compare_versions(version, entry + length + 1) <= 0)
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("version \"%s\" of extension \"%s\" is not installed on all hosts of this database",
						version, name),
				 errdetail("Some host has \"%s\": it would not work there after a failover.",
						   entry + length + 1),
				 errhint("Install it on the hosts that have an older one: howdah status names them.")));
	}
}

/* the version of an extension that is there, or NULL */
char *
howdah_extension_version(Oid extension)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	char	   *version = NULL;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(rel, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		is_null;
		Datum		value = heap_getattr(tuple, Anum_pg_extension_extversion,
										 RelationGetDescr(rel), &is_null);

		if (!is_null)
			version = TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return version;
}

/*
 * Number by number, and word by word: 1.9 is older than 1.10, and 1.4 is older than
 * 1.4-1. internal/model/extension has the same order.
 */
static int
compare_versions(const char *a, const char *b)
{
	for (;;)
	{
		size_t		na,
					nb;
		int			order;

		a = next_word(a, &na);
		b = next_word(b, &nb);
		if (na == 0 || nb == 0)
			return (na != 0) - (nb != 0);
		if (isdigit((unsigned char) *a) && isdigit((unsigned char) *b))
		{
			/* of any length */
			for (; na > 1 && *a == '0'; na--)
				a++;
			for (; nb > 1 && *b == '0'; nb--)
				b++;
			if (na != nb)
				return na < nb ? -1 : 1;
		}
		order = memcmp(a, b, Min(na, nb));
		if (order != 0 || na != nb)
			return order != 0 ? order : na < nb ? -1 : 1;
		a += na;
		b += nb;
	}
}

/* where the next number or word of a version begins, and how long it is */
static const char *
next_word(const char *text, size_t *length)
{
	while (*text != '\0' && !isalnum((unsigned char) *text))
		text++;
	*length = 0;
	while (isalnum((unsigned char) text[*length]) &&
		   !isdigit((unsigned char) text[*length]) == !isdigit((unsigned char) *text))
		(*length)++;
	return text;
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
