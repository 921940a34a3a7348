/*-------------------------------------------------------------------------
 *
 * extension.c
 *		Guard of extensions.
 *
 * Users may create the extensions of an allow-list. What PostgreSQL lets a
 * user create (a trusted extension) takes PostgreSQL's way. For master users
 * the rest runs as the admin role and ends as a trusted extension does: the
 * user owns the extension, and a schema that the command had to create, and
 * may drop, update and move it; the admin role owns what the script made.
 *
 * The script of an extension is trusted, its surroundings are not: the target
 * schema must be the user's to create in, one that an extension has for itself
 * must be new or the user's (else its owner would say who uses the extension, and
 * may have put functions of the same names there), and trust.c lets nothing of a user run
 * meanwhile, whoever gives the script its rights. Extensions that CASCADE pulls
 * in are checked as they are created, by the object access hook.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "commands/schemacmds.h"
#include "executor/spi.h"
#include "extension_check.h"
#include "extension_grant.h"
#include "extension_script.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* what a user's statement has created so far */
typedef struct Creation
{
	List	   *extensions;		/* OIDs of extensions */
	List	   *schemas;		/* OIDs of schemas that are not members of one */
	MemoryContext context;		/* where the lists live */
	Oid			user;			/* who is to own them */
	Oid			updated;		/* extension that the statement changes, if any */
	const char *before;			/* its version before that */
	const char *search_path;	/* the only one for the statement, or NULL */
	const char *own_schemas;	/* a list: those that extensions insist to be in */
	UtilityCall *call;
} Creation;

/* what matters of an extension's control file, and of those it requires */
typedef struct ControlFile
{
	bool		needs_superuser;	/* it, or a missing required one, is not trusted */
	bool		runs_as_superuser;	/* a script of these does, trusted or not */
	char	   *schema;			/* where it insists to be, or NULL */
	char	   *schemas;		/* where all of them insist to be, as a list of identifiers */
	char	   *newest;			/* its default version, or NULL */
} ControlFile;

/* with which rights a statement runs */
typedef enum Rights
{
	AS_USER,
	AS_TRUSTED,					/* PostgreSQL switches to the bootstrap superuser */
	AS_ADMIN
} Rights;

/* the user's statement on extensions under way, or NULL */
static Creation *creation = NULL;

static object_access_hook_type next_object_access;

static void object_access(ObjectAccessType access, Oid class, Oid object,
						  int sub_id, void *arg);
static char *new_extension_name(Oid extension, Oid *schema, char **version);
static void check_own_schema(Oid schema);
static bool guard_kept(UtilityCall *call, List *names);
static const char *check_target_schema(CreateExtensionStmt *stmt,
									   const ControlFile *control, bool elevated);
static DefElem *option_named(List *options, const char *name);
static const char *string_option(List *options, const char *name);
static ControlFile read_control_file(const char *name, const char *version);
static void guard_create(UtilityCall *call);
static void guard_update(UtilityCall *call);
static void guard_move(UtilityCall *call);
static bool is_rds_tools(CreateExtensionStmt *stmt);
static void say_exists(CreateExtensionStmt *stmt);
static Rights rights_for(const ControlFile *control, bool elevated);
static void run_watched(UtilityCall *call, Oid updated, Rights rights,
						const char *search_path, const char *own_schemas);
static void run_in_search_path(void *arg);
static void run_and_hand_over(void *arg);
static void hand_over_extension(Oid extension, Oid owner);

/* install the hook that sees extensions being created */
void
howdah_extension_init(void)
{
	next_object_access = object_access_hook;
	object_access_hook = object_access;
}

/* guard: see the head of this file */
bool
howdah_guard_extension(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	switch (nodeTag(node))
	{
		case T_CreateExtensionStmt:
			howdah_run_between_triggers(call, guard_create);
			return true;
		case T_AlterExtensionStmt:
			howdah_run_between_triggers(call, guard_update);
			return true;
		case T_AlterExtensionContentsStmt:
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied to change the members of extension \"%s\"",
							((AlterExtensionContentsStmt *) node)->extname)));
			return true;
		case T_AlterObjectSchemaStmt:
			if (((AlterObjectSchemaStmt *) node)->objectType != OBJECT_EXTENSION)
				return false;
			howdah_run_between_triggers(call, guard_move);
			return true;
		case T_DropStmt:
			return ((DropStmt *) node)->removeType == OBJECT_EXTENSION &&
				guard_kept(call, ((DropStmt *) node)->objects);
		case T_CommentStmt:
			return ((CommentStmt *) node)->objtype == OBJECT_EXTENSION &&
				guard_kept(call, list_make1(((CommentStmt *) node)->object));
		default:
			return false;
	}
}

/* guard of what the script of an extension does for a user, with whatever rights */
void
howdah_guard_script(UtilityCall *call)
{
	if (howdah_in_script())
		howdah_check_script_statement(call->pstmt->utilityStmt, creation->user);
}

/* does the script of an extension run for a user? */
bool
howdah_in_script(void)
{
	return creation != NULL && creating_extension;
}

/*
 * DROP and COMMENT of extensions that the admin role keeps: master users may,
 * as if these were theirs. True if it has run the statement.
 */
static bool
guard_kept(UtilityCall *call, List *names)
{
	ListCell   *lc;

	foreach(lc, names)
		if (!howdah_keeps_extension(strVal(lfirst(lc))))
			return false;
	if (!howdah_has_superuser_role())
		return false;
	howdah_check_extension_database(strVal(linitial(names)));
	howdah_run_call_as_admin(call);
	return true;
}

/* CREATE EXTENSION */
static void
guard_create(UtilityCall *call)
{
	CreateExtensionStmt *stmt = (CreateExtensionStmt *) call->pstmt->utilityStmt;
	ControlFile control;
	const char *search_path;
	bool		elevated;

	/* not left to PostgreSQL: for it, it may be gone by then, and unguarded */
	if (OidIsValid(get_extension_oid(stmt->extname, true)) ||
		(is_rds_tools(stmt) && howdah_in_multi_az_cluster()))
	{
		say_exists(stmt);
		return;
	}
	howdah_check_extension_allowed(stmt->extname);
	howdah_check_extension_everywhere(stmt->extname);
	control = read_control_file(stmt->extname,
								string_option(stmt->options, "new_version"));
	howdah_check_extension_version(stmt->extname, string_option(stmt->options, "new_version"),
								   control.newest);
	elevated = control.needs_superuser && howdah_has_superuser_role();
	search_path = check_target_schema(stmt, &control, elevated);
	if (elevated)
		howdah_check_extension_database(stmt->extname);
	run_watched(call, InvalidOid, rights_for(&control, elevated), search_path,
				control.schemas);
}

/* ALTER EXTENSION ... UPDATE */
static void
guard_update(UtilityCall *call)
{
	AlterExtensionStmt *stmt = (AlterExtensionStmt *) call->pstmt->utilityStmt;
	Oid			extension = get_extension_oid(stmt->extname, true);
	ControlFile control;
	bool		elevated;

	howdah_check_extension_allowed(stmt->extname);
	control = read_control_file(stmt->extname,
								string_option(stmt->options, "new_version"));
	howdah_check_extension_version(stmt->extname, string_option(stmt->options, "new_version"),
								   control.newest);
	if (OidIsValid(extension) && control.newest != NULL)
	{
		howdah_check_script_update(stmt->extname, control.newest);
		howdah_check_script_search_path(stmt->extname);
	}
	elevated = control.needs_superuser && howdah_has_superuser_role() &&
		OidIsValid(extension);
	if (elevated)
	{
		if (!howdah_keeps_extension(stmt->extname))
			howdah_check_extension_owner(stmt->extname);
		howdah_check_extension_database(stmt->extname);
	}
	run_watched(call, extension, rights_for(&control, elevated), NULL, control.schemas);
}

/* ALTER EXTENSION ... SET SCHEMA: the members belong to the admin role */
static void
guard_move(UtilityCall *call)
{
	AlterObjectSchemaStmt *stmt = (AlterObjectSchemaStmt *) call->pstmt->utilityStmt;
	const char *name = strVal(stmt->object);

	howdah_check_extension_allowed(name);
	if (!howdah_has_superuser_role() ||
		!OidIsValid(get_extension_oid(name, true)))
	{
		run_watched(call, InvalidOid, AS_USER, NULL, "");
		return;
	}
	howdah_check_extension_owner(name);
	howdah_check_extension_not_system_schema(stmt->newschema);
	howdah_check_extension_create_in_schema(stmt->newschema);
	run_watched(call, InvalidOid, AS_ADMIN, NULL, "");
}

/*
 * Users of a Multi-AZ DB cluster create this one on RDS. Here it is there, but for
 * the first seconds of a database, before the agent has come (drivers.sql).
 */
static bool
is_rds_tools(CreateExtensionStmt *stmt)
{
	return strcmp(stmt->extname, "rds_tools") == 0;
}

/* in PostgreSQL's words, which has no privilege to check for that */
static void
say_exists(CreateExtensionStmt *stmt)
{
	bool		satisfied = stmt->if_not_exists || is_rds_tools(stmt);

	ereport(satisfied ? NOTICE : ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 satisfied ?
			 errmsg("extension \"%s\" already exists, skipping", stmt->extname) :
			 errmsg("extension \"%s\" already exists", stmt->extname)));
}

static Rights
rights_for(const ControlFile *control, bool elevated)
{
	if (elevated)
		return AS_ADMIN;
	return control->runs_as_superuser ? AS_TRUSTED : AS_USER;
}

/*
 * Check the schema that the command names or defaults to. It does not matter
 * to an extension with a schema of its own, but to what CASCADE adds. Returns
 * the search_path in which the command means no other one when it runs, or
 * NULL for any: the schema may be dropped meanwhile, and the next one of the
 * user's search_path be pg_catalog.
 */
static const char *
check_target_schema(CreateExtensionStmt *stmt, const ControlFile *control,
					bool elevated)
{
	const char *name = string_option(stmt->options, "schema");

	if (control->schema != NULL && option_named(stmt->options, "cascade") == NULL)
		return NULL;
	if (name == NULL)
	{
		List	   *path = fetch_search_path(false);

		if (path != NIL)
			name = get_namespace_name(linitial_oid(path));
		list_free(path);
	}
	if (name == NULL)
		return "";
	howdah_check_extension_not_system_schema(name);
	if (elevated)
		howdah_check_extension_create_in_schema(name);
	return quote_identifier(name);
}

/* an option, or NULL; that it is given twice is for PostgreSQL to say */
static DefElem *
option_named(List *options, const char *name)
{
	ListCell   *lc;

	foreach(lc, options)
		if (strcmp(lfirst_node(DefElem, lc)->defname, name) == 0)
			return lfirst_node(DefElem, lc);
	return NULL;
}

/* value of an option, or NULL */
static const char *
string_option(List *options, const char *name)
{
	DefElem    *option = option_named(options, name);

	return option != NULL && option->arg != NULL ? defGetString(option) : NULL;
}

/*
 * What the control files say about creating this version, or the default one.
 * All false for an extension that there is not, which PostgreSQL will say.
 */
static ControlFile
read_control_file(const char *name, const char *version)
{
	static const char query[] =
	"WITH RECURSIVE needed (name, version) AS ("
	" SELECT a.name, coalesce($2, a.default_version)"
	"  FROM pg_catalog.pg_available_extensions a WHERE a.name = $1::name"
	" UNION"
	" SELECT a.name, a.default_version"
	"  FROM needed n"
	"  JOIN pg_catalog.pg_available_extension_versions v"
	"   ON v.name = n.name AND v.version = n.version"
	"  JOIN pg_catalog.pg_available_extensions a"
	"   ON a.name = ANY (v.requires) AND a.installed_version IS NULL)"
	"SELECT coalesce(bool_or(v.superuser AND NOT v.trusted), false),"
	"  max(v.schema::text) FILTER (WHERE v.name = $1::name),"
	"  EXISTS (SELECT FROM needed JOIN pg_catalog.pg_available_extension_versions USING (name)"
	"   WHERE superuser),"
	"  coalesce(string_agg(DISTINCT quote_ident(v.schema::text), ','), ''),"
	"  (SELECT default_version FROM pg_catalog.pg_available_extensions WHERE name = $1::name)"
	" FROM needed n"
	" JOIN pg_catalog.pg_available_extension_versions v"
	"  ON v.name = n.name AND v.version = n.version";
	Oid			types[] = {TEXTOID, TEXTOID};
	Datum		values[] = {CStringGetTextDatum(name),
	version ? CStringGetTextDatum(version) : (Datum) 0};
	int			save_settings = NewGUCNestLevel();
	MemoryContext context = CurrentMemoryContext;
	ControlFile control;
	char	   *schema;
	char	   *newest;

	/* the user's search_path must not choose the query's operators */
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	SPI_connect();
	if (SPI_execute_with_args(query, lengthof(types), types, values,
							  version ? "  " : " n", true, 1) != SPI_OK_SELECT ||
		SPI_processed != 1)
		elog(ERROR, "could not look up extension \"%s\"", name);
	control.needs_superuser =
		strcmp(SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1), "t") == 0;
	control.runs_as_superuser =
		strcmp(SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 3), "t") == 0;
	schema = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2);
	control.schema = schema ? MemoryContextStrdup(context, schema) : NULL;
	newest = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 5);
	control.newest = newest ? MemoryContextStrdup(context, newest) : NULL;
	control.schemas =
		MemoryContextStrdup(context, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 4));
	SPI_finish();
	AtEOXact_GUC(true, save_settings);
	return control;
}

/* run the statement and see what it creates; search_path holds meanwhile, if given */
static void
run_watched(UtilityCall *call, Oid updated, Rights rights,
			const char *search_path, const char *own_schemas)
{
	Creation	mine = {NIL, NIL, CurrentMemoryContext, GetUserId(), updated,
	OidIsValid(updated) ? howdah_extension_version(updated) : NULL,
	search_path, own_schemas, call};
	Creation   *outer = creation;

	creation = &mine;
	PG_TRY();
	{
		if (rights == AS_ADMIN)
			howdah_run_as_admin(run_and_hand_over, &mine);
		else if (rights == AS_TRUSTED)
			howdah_run_confined(run_in_search_path, &mine);
		else
			run_in_search_path(&mine);
	}
	PG_FINALLY();
	{
		creation = outer;
	}
	PG_END_TRY();
}

/* as PostgreSQL would, but for the search_path, and for what other hosts have */
static void
run_in_search_path(void *arg)
{
	Creation   *mine = arg;
	int			save_settings = NewGUCNestLevel();
	ListCell   *lc;

	if (mine->search_path != NULL)
		(void) set_config_option("search_path", mine->search_path,
								 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
								 true, 0, false);
	howdah_run(mine->call);
	AtEOXact_GUC(true, save_settings);
	CommandCounterIncrement();
	foreach(lc, mine->extensions)
		howdah_check_extension_newest(lfirst_oid(lc), NULL);
	if (OidIsValid(mine->updated))
		howdah_check_extension_newest(mine->updated, mine->before);
}

/* as the admin role: create, then give the user what a trusted extension would */
static void
run_and_hand_over(void *arg)
{
	Creation   *mine = arg;
	ListCell   *lc;

	run_in_search_path(mine);
	foreach(lc, mine->schemas)
		AlterSchemaOwner_oid(lfirst_oid(lc), mine->user);
	foreach(lc, mine->extensions)
	{
		if (!howdah_keeps_extension(get_extension_name(lfirst_oid(lc))))
			hand_over_extension(lfirst_oid(lc), mine->user);
		howdah_grant_extension(lfirst_oid(lc));
	}
	if (OidIsValid(mine->updated))
		howdah_grant_extension(mine->updated);
	CommandCounterIncrement();
}

/* change the owner of an extension, for which there is no command */
static void
hand_over_extension(Oid extension, Oid owner)
{
	Relation	rel = table_open(ExtensionRelationId, RowExclusiveLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(rel, ExtensionOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "could not find extension %u", extension);
	tuple = heap_copytuple(tuple);
	systable_endscan(scan);

	((Form_pg_extension) GETSTRUCT(tuple))->extowner = owner;
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	changeDependencyOnOwner(ExtensionRelationId, extension, owner);
	table_close(rel, RowExclusiveLock);
}

/*
 * object_access_hook: check each extension that a user's statement creates,
 * the ones that CASCADE adds too, before its script runs.
 */
static void
object_access(ObjectAccessType access, Oid class, Oid object, int sub_id,
			  void *arg)
{
	if (next_object_access)
		next_object_access(access, class, object, sub_id, arg);
	if (access == OAT_FUNCTION_EXECUTE)
	{
		howdah_check_execute(object);
		howdah_storage_function(object);
	}
	else if (access == OAT_NAMESPACE_SEARCH)
		howdah_storage_namespace();
	else if ((access == OAT_POST_CREATE || access == OAT_POST_ALTER) &&
			 class == ProcedureRelationId)
		howdah_check_function_name(object);
	if (creation == NULL || access != OAT_POST_CREATE)
		return;

	if (class == ExtensionRelationId)
	{
		MemoryContext save = MemoryContextSwitchTo(creation->context);
		Oid			schema;
		char	   *version;
		char	   *name;

		name = new_extension_name(object, &schema, &version);
		howdah_check_extension_allowed(name);
		howdah_check_extension_everywhere(name);
		howdah_check_script_version(name, version);
		howdah_check_script_search_path(name);
		check_own_schema(schema);
		creation->extensions = lappend_oid(creation->extensions, object);
		MemoryContextSwitchTo(save);
	}
	else if (class == NamespaceRelationId && !creating_extension)
	{
		MemoryContext save = MemoryContextSwitchTo(creation->context);

		creation->schemas = lappend_oid(creation->schemas, object);
		MemoryContextSwitchTo(save);
	}
}

/* is the schema of an extension, if it insists on that one, new or the user's? */
static void
check_own_schema(Oid schema)
{
	const char *name = get_namespace_name(schema);

	if (name == NULL || list_member_oid(creation->schemas, schema) ||
		strcmp(name, "public") == 0 || IsCatalogNamespace(schema) ||
		!howdah_listed(creation->own_schemas, name))
		return;
	if (!object_ownercheck(NamespaceRelationId, schema, creation->user))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SCHEMA, name);
}

/* name, schema and version of an extension whose row this very command has just inserted */
static char *
new_extension_name(Oid extension, Oid *schema, char **version)
{
	Relation	rel = table_open(ExtensionRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		null;
	char	   *name;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(rel, ExtensionOidIndexId, true, SnapshotSelf,
							  1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "could not find extension %u", extension);
	name = pstrdup(NameStr(((Form_pg_extension) GETSTRUCT(tuple))->extname));
	*schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	*version = TextDatumGetCString(heap_getattr(tuple, Anum_pg_extension_extversion,
												RelationGetDescr(rel), &null));
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return name;
}
