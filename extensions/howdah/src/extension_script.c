/*-------------------------------------------------------------------------
 *
 * extension_script.c
 *		What the scripts of extensions find, and what they may do.
 *
 * A few scripts make statements of texts that users wrote, and run them with
 * the rights of a superuser. What these scripts find is looked at before:
 *
 * - postgis_topology takes the search_path that the session began with as a
 *   part of two statements, and goes on with it. So it must be a list of plain names,
 *   and not have users' schemas before pg_catalog.
 * - Updates of postgis rewrite functions by their names, whoever owns them:
 *   those that an earlier update has renamed and could not drop. The text of
 *   such a function, and the name of its schema, become a part of a statement.
 *   So users have no functions of such names.
 *
 * Scripts differ from version to version: from 3.4 on, postgis_topology takes the
 * search_path of the database instead, which may be set after the login. What nobody
 * has read for this is refused: the creation of such a version of postgis_topology,
 * and updates of all extensions of PostGIS to one.
 *
 * As a second net, no script does what no extension needs: it changes no role,
 * no membership, no database and no shared catalog, and touches no file.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <ctype.h>

#include "access/genam.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "extension_script.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* versions of PostGIS whose scripts of updates have been read */
static const char *const read_versions[] = {"3.3.2"};

/* extensions whose script takes the search_path as a part of a statement */
static const char *const search_path_extensions[] = {"postgis_topology"};

/* what the names of functions have in common that updates of postgis rewrite */
static const char rewritten_name[] = "_deprecated_by_postgis_";

static bool is_plain_list(const char *text);
static const char *skip_name(const char *text);
static bool takes_search_path(const char *extension);
static bool is_read(const char *version);
static char *rewritten_function(void);
static bool is_database_or_role(ObjectType type);
static bool is_for_scripts(Node *statement);
static char *function_name(Oid function);

bool
howdah_is_postgis(const char *extension)
{
	return strncmp(extension, "postgis", strlen("postgis")) == 0;
}

/* refuse to create a version that was not read, of an extension whose script makes statements of texts */
void
howdah_check_script_version(const char *extension, const char *version)
{
	if (takes_search_path(extension) && !is_read(version))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to create version \"%s\" of extension \"%s\"",
						version, extension),
				 errdetail("It is not known whether this version's script is safe to run for users.")));
}

/* refuse a search_path that must not become a part of a statement, where the script makes one of it */
void
howdah_check_script_search_path(const char *extension)
{
	const char *path = GetConfigOptionResetString("search_path");

	if (takes_search_path(extension) && (!is_plain_list(path) || howdah_listed(path, "pg_catalog")))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("extension \"%s\" cannot be created or updated with the search_path of this login",
						extension),
				 errdetail("Its script needs a list of plain names without pg_catalog, and not: %s", path),
				 errhint("Set another one by ALTER ROLE or ALTER DATABASE, as in SET search_path = \"$user\", public, and connect anew.")));
}

/* refuse updates to versions of PostGIS that were not read, or with functions that they would rewrite */
void
howdah_check_script_update(const char *extension, const char *version)
{
	char	   *function;

	if (!howdah_is_postgis(extension))
		return;
	if (!is_read(version))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to update extension \"%s\" to version \"%s\"",
						extension, version),
				 errdetail("It is not known whether this version's script is safe to run for users."),
				 errhint("Dump the database, and restore it into a new one.")));
	function = rewritten_function();
	if (function != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("extension \"%s\" cannot be updated while there is the function %s",
						extension, function),
				 errdetail("The script of the update would rewrite it."),
				 errhint("Drop it, or give it another name.")));
}

/* refuse a name by which updates of postgis would rewrite a user's function */
void
howdah_check_function_name(Oid function)
{
	char	   *name;

	if (superuser())
		return;
	name = function_name(function);
	if (strstr(name, rewritten_name) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("permission denied to name a function \"%s\"", name),
				 errdetail("Updates of postgis rewrite functions with \"%s\" in their names.",
						   rewritten_name)));
}

/* refuse what no script of an extension needs, but what a user's text could say in one */
void
howdah_check_script_statement(Node *statement, Oid user)
{
	if (IsA(statement, AlterDatabaseSetStmt))
	{
		const char *database = ((AlterDatabaseSetStmt *) statement)->dbname;

		if (!object_ownercheck(DatabaseRelationId, get_database_oid(database, false), user))
			aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_DATABASE, database);
	}
	else if (!is_for_scripts(statement))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to run this in the script of an extension"),
				 errdetail("Scripts change no roles and no databases, and touch no files.")));
}

static bool
is_for_scripts(Node *statement)
{
	switch (nodeTag(statement))
	{
		case T_CreateRoleStmt:
		case T_AlterRoleStmt:
		case T_AlterRoleSetStmt:
		case T_DropRoleStmt:
		case T_GrantRoleStmt:
		case T_DropOwnedStmt:
		case T_ReassignOwnedStmt:
		case T_AlterSystemStmt:
		case T_CreatedbStmt:
		case T_DropdbStmt:
		case T_AlterDatabaseStmt:
		case T_CreateTableSpaceStmt:
		case T_DropTableSpaceStmt:
		case T_CreateSubscriptionStmt:
			return false;
		case T_CopyStmt:
			return ((CopyStmt *) statement)->filename == NULL;
		case T_RenameStmt:
			return !is_database_or_role(((RenameStmt *) statement)->renameType);
		case T_AlterOwnerStmt:
			return !is_database_or_role(((AlterOwnerStmt *) statement)->objectType);
		default:
			return true;
	}
}

static bool
is_database_or_role(ObjectType type)
{
	return type == OBJECT_ROLE || type == OBJECT_DATABASE || type == OBJECT_TABLESPACE;
}

static bool
takes_search_path(const char *extension)
{
	for (int i = 0; i < lengthof(search_path_extensions); i++)
		if (strcmp(extension, search_path_extensions[i]) == 0)
			return true;
	return false;
}

/* has somebody read the scripts of this version of PostGIS? */
static bool
is_read(const char *version)
{
	for (int i = 0; i < lengthof(read_versions); i++)
		if (strcmp(version, read_versions[i]) == 0)
			return true;
	return false;
}

/*
 * Is it a list of plain names? Each is of ASCII letters, digits, _ and $, or in
 * double quotes without one inside: then it is one word of a statement, whatever
 * it says.
 */
static bool
is_plain_list(const char *text)
{
	for (;;)
	{
		text = skip_name(text + strspn(text, " "));
		if (text == NULL)
			return false;
		text += strspn(text, " ");
		if (*text == '\0')
			return true;
		if (*text++ != ',')
			return false;
	}
}

/* what comes after a name, or NULL if there is no plain one */
static const char *
skip_name(const char *text)
{
	static const char letters[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789$";
	size_t		length;

	if (*text == '"')
	{
		length = strcspn(text + 1, "\"");
		if (length == 0 || text[length + 1] == '\0' || text[length + 2] == '"')
			return NULL;
		return text + length + 2;
	}
	length = strspn(text, letters);
	if (length == 0 || isdigit((unsigned char) *text) || *text == '$')
		return NULL;
	return text + length;
}

/*
 * A function that an update of postgis would rewrite, or NULL. What earlier updates
 * have left is the platform's, but its schema is a user's, and has the name that
 * the user likes. Where the update sees it without that name, it leaves it out.
 */
static char *
rewritten_function(void)
{
	static const char query[] =
	"SELECT p.oid::regprocedure FROM pg_catalog.pg_proc p"
	" JOIN pg_catalog.pg_roles r ON r.oid = p.proowner"
	" WHERE pg_catalog.strpos(p.proname::text, $1) > 0 AND (NOT r.rolsuper"
	"  OR p.pronamespace NOT IN (SELECT extnamespace FROM pg_catalog.pg_extension WHERE extname = 'postgis'))";
	Oid			types[] = {TEXTOID};
	Datum		values[] = {CStringGetTextDatum(rewritten_name)};
	MemoryContext context = CurrentMemoryContext;
	int			save_settings = NewGUCNestLevel();
	char	   *found = NULL;

	/* the user's search_path must not choose the query's operators */
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	SPI_connect();
	if (SPI_execute_with_args(query, lengthof(types), types, values, NULL, true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for functions");
	if (SPI_processed > 0)
		found = MemoryContextStrdup(context, SPI_getvalue(SPI_tuptable->vals[0],
														  SPI_tuptable->tupdesc, 1));
	SPI_finish();
	AtEOXact_GUC(true, save_settings);
	return found;
}

/* name of a function whose row this very command has just written */
static char *
function_name(Oid function)
{
	Relation	rel = table_open(ProcedureRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	char	   *name;

	ScanKeyInit(&key, Anum_pg_proc_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(function));
	scan = systable_beginscan(rel, ProcedureOidIndexId, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "could not find function %u", function);
	name = pstrdup(NameStr(((Form_pg_proc) GETSTRUCT(tuple))->proname));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return name;
}
