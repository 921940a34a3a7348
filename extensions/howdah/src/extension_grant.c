/*-------------------------------------------------------------------------
 *
 * extension_grant.c
 *		What master users get on the objects of a new extension.
 *
 * The admin role owns these objects, so a user has what their script grants
 * to PUBLIC. For a few extensions that is not enough to use them as on RDS:
 * the wrappers through which servers are created, tables that are there to be
 * written to, and functions that only read or reset and that their authors
 * kept from PUBLIC. Nothing is granted by pattern: dblink_connect_u, for one,
 * must stay with superusers.
 *
 * All of this counts as the extension's own privileges (pg_init_privs), so that
 * pg_dump does not dump it, and a restore by a master user does not fail at it.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_foreign_data_wrapper.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "extension_grant.h"
#include "foreign/foreign.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"

typedef struct Grant
{
	const char *extension;
	Oid			class;			/* kind of object */
	const char *object;			/* its name; NULL for all of that kind */
	const char *rights;			/* what the master users' role gets */
} Grant;

static const Grant grants[] = {
	{"amcheck", ProcedureRelationId, NULL, "EXECUTE"},
	{"aws_commons", ProcedureRelationId, NULL, "EXECUTE"},
	{"aws_s3", ProcedureRelationId, NULL, "EXECUTE"},
	{"dblink", ForeignDataWrapperRelationId, "dblink_fdw", "USAGE"},
	{"log_fdw", ForeignDataWrapperRelationId, "log_fdw", "USAGE"},
	{"log_fdw", ProcedureRelationId, NULL, "EXECUTE"},
	{"mysql_fdw", ForeignDataWrapperRelationId, "mysql_fdw", "USAGE"},
	{"oracle_fdw", ForeignDataWrapperRelationId, "oracle_fdw", "USAGE"},
	/* that dumps can be restored: nobody has the functions that read it (argument.c) */
	{"orafce", RelationRelationId, "utl_file_dir", "SELECT, INSERT, UPDATE, DELETE"},
	{"pg_cron", NamespaceRelationId, "cron", "USAGE"},
	/* not alter_job: it finds the job by operators of whoever calls it */
	{"pg_cron", ProcedureRelationId, "schedule", "EXECUTE"},
	{"pg_cron", ProcedureRelationId, "schedule_in_database", "EXECUTE"},
	{"pg_cron", ProcedureRelationId, "unschedule", "EXECUTE"},
	{"pg_partman", RelationRelationId, NULL, "SELECT, INSERT, UPDATE, DELETE"},
	{"pg_qualstats", ProcedureRelationId, "pg_qualstats_reset", "EXECUTE"},
	{"pg_stat_statements", ProcedureRelationId, "pg_stat_statements_reset", "EXECUTE"},
	{"pg_wait_sampling", ProcedureRelationId, "pg_wait_sampling_reset_profile", "EXECUTE"},
	{"postgis", RelationRelationId, "spatial_ref_sys", "SELECT, INSERT, UPDATE, DELETE"},
	{"postgis_topology", RelationRelationId, "layer", "SELECT, INSERT, UPDATE, DELETE"},
	{"postgis_topology", RelationRelationId, "topology", "SELECT, INSERT, UPDATE, DELETE"},
	{"postgis_topology", RelationRelationId, "topology_id_seq", "SELECT, USAGE, UPDATE"},
	{"postgres_fdw", ForeignDataWrapperRelationId, "postgres_fdw", "USAGE"},
	{"tds_fdw", ForeignDataWrapperRelationId, "tds_fdw", "USAGE"},
};

/* see howdah_keeps_extension */
static const char *const kept[] = {"pg_cron"};

static void run_as_script(Oid extension, const char *command);
static List *extension_members(Oid extension, Oid class);
static char *object_name(Oid class, Oid object);
static const char *object_words(Oid class, Oid object);
static bool is_grantable(Oid class, Oid object);

/*
 * Does the admin role stay the owner of this extension? pg_cron writes to its
 * tables as the extension's owner, past their policies: a user as the owner
 * could not schedule anything. Master users drop, update and comment on it all
 * the same.
 */
bool
howdah_keeps_extension(const char *name)
{
	for (int i = 0; i < lengthof(kept); i++)
		if (strcmp(name, kept[i]) == 0)
			return true;
	return false;
}

/* grant what the table above says for this extension */
void
howdah_grant_extension(Oid extension)
{
	const char *name = get_extension_name(extension);

	for (int i = 0; i < lengthof(grants); i++)
	{
		ListCell   *lc;

		if (strcmp(name, grants[i].extension) != 0)
			continue;
		foreach(lc, extension_members(extension, grants[i].class))
		{
			Oid			object = lfirst_oid(lc);

			if (!is_grantable(grants[i].class, object))
				continue;
			if (grants[i].object == NULL ||
				strcmp(object_name(grants[i].class, object), grants[i].object) == 0)
				run_as_script(extension,
							  psprintf("GRANT %s ON %s TO %s WITH GRANT OPTION",
									   grants[i].rights,
									   object_words(grants[i].class, object),
									   quote_identifier(howdah_superuser_role)));
		}
	}
}

/* run a GRANT as if the extension's script did */
static void
run_as_script(Oid extension, const char *command)
{
	bool		save_creating = creating_extension;
	Oid			save_extension = CurrentExtensionObject;

	creating_extension = true;
	CurrentExtensionObject = extension;
	PG_TRY();
	{
		SPI_connect();
		if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
			elog(ERROR, "could not run \"%s\"", command);
		SPI_finish();
	}
	PG_FINALLY();
	{
		creating_extension = save_creating;
		CurrentExtensionObject = save_extension;
	}
	PG_END_TRY();
}

/* OIDs of an extension's member objects of one kind */
static List *
extension_members(Oid extension, Oid class)
{
	Relation	rel = table_open(DependRelationId, AccessShareLock);
	SysScanDesc scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	List	   *members = NIL;

	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(ExtensionRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(extension));
	scan = systable_beginscan(rel, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);

		if (depend->classid == class && depend->deptype == DEPENDENCY_EXTENSION)
			members = lappend_oid(members, depend->objid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return members;
}

/* the row type of a composite type is in pg_class, too, and nobody has rights on it */
static bool
is_grantable(Oid class, Oid object)
{
	return class != RelationRelationId ||
		get_rel_relkind(object) != RELKIND_COMPOSITE_TYPE;
}

static char *
object_name(Oid class, Oid object)
{
	switch (class)
	{
		case ProcedureRelationId:
			return get_func_name(object);
		case NamespaceRelationId:
			return get_namespace_name(object);
		case RelationRelationId:
			return get_rel_name(object);
		default:
			return GetForeignDataWrapper(object)->fdwname;
	}
}

/* the object as GRANT names it */
static const char *
object_words(Oid class, Oid object)
{
	const char *name = quote_identifier(object_name(class, object));

	switch (class)
	{
		case ProcedureRelationId:
			return psprintf("ROUTINE %s", format_procedure_qualified(object));
		case NamespaceRelationId:
			return psprintf("SCHEMA %s", name);
		case RelationRelationId:
			return psprintf("%s %s.%s",
							get_rel_relkind(object) == RELKIND_SEQUENCE ? "SEQUENCE" : "TABLE",
							quote_identifier(get_namespace_name(get_rel_namespace(object))),
							name);
		default:
			return psprintf("FOREIGN DATA WRAPPER %s", name);
	}
}
