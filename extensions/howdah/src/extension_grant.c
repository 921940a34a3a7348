/*-------------------------------------------------------------------------
 *
 * extension_grant.c
 *		What master users get on the objects of a new extension.
 *
 * The admin role owns these objects, so a user has what their script grants
 * to PUBLIC. For a few extensions that is not enough to use them as on RDS:
 * the wrappers through which servers are created, and functions that only
 * read or reset and that their authors kept from PUBLIC. Nothing is granted
 * by pattern: dblink_connect_u, for one, must stay with superusers.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/genam.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_foreign_data_wrapper.h"
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
} Grant;

static const Grant grants[] = {
	{"amcheck", ProcedureRelationId, NULL},
	{"aws_commons", ProcedureRelationId, NULL},
	{"aws_s3", ProcedureRelationId, NULL},
	{"dblink", ForeignDataWrapperRelationId, "dblink_fdw"},
	{"log_fdw", ForeignDataWrapperRelationId, "log_fdw"},
	{"log_fdw", ProcedureRelationId, NULL},
	{"mysql_fdw", ForeignDataWrapperRelationId, "mysql_fdw"},
	{"oracle_fdw", ForeignDataWrapperRelationId, "oracle_fdw"},
	{"pg_stat_statements", ProcedureRelationId, "pg_stat_statements_reset"},
	{"postgres_fdw", ForeignDataWrapperRelationId, "postgres_fdw"},
	{"tds_fdw", ForeignDataWrapperRelationId, "tds_fdw"},
};

static List *extension_members(Oid extension, Oid class);
static char *object_name(Oid class, Oid object);
static void grant_object(Oid class, Oid object);
static void grant_members(Oid extension);

/*
 * Grant what the table above says for this extension, as its script would: what
 * a script grants is not in dumps. It could not be restored: to whom a user has
 * it from, a user cannot grant it.
 */
void
howdah_grant_extension(Oid extension)
{
	bool		save_creating = creating_extension;
	Oid			save_extension = CurrentExtensionObject;

	creating_extension = true;
	CurrentExtensionObject = extension;
	PG_TRY();
	{
		grant_members(extension);
	}
	PG_FINALLY();
	{
		creating_extension = save_creating;
		CurrentExtensionObject = save_extension;
	}
	PG_END_TRY();
}

static void
grant_members(Oid extension)
{
	const char *name = get_extension_name(extension);

	for (int i = 0; i < lengthof(grants); i++)
	{
		ListCell   *lc;

		if (strcmp(name, grants[i].extension) != 0)
			continue;
		foreach(lc, extension_members(extension, grants[i].class))
		{
			if (grants[i].object == NULL ||
				strcmp(object_name(grants[i].class, lfirst_oid(lc)),
					   grants[i].object) == 0)
				grant_object(grants[i].class, lfirst_oid(lc));
		}
	}
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

static char *
object_name(Oid class, Oid object)
{
	return class == ProcedureRelationId ? get_func_name(object) :
		GetForeignDataWrapper(object)->fdwname;
}

/* grant the use of one object, with the right to pass it on */
static void
grant_object(Oid class, Oid object)
{
	char	   *command;

	if (class == ProcedureRelationId)
		command = psprintf("GRANT EXECUTE ON FUNCTION %s TO %s WITH GRANT OPTION",
						   format_procedure_qualified(object),
						   quote_identifier(howdah_superuser_role));
	else
		command = psprintf("GRANT USAGE ON FOREIGN DATA WRAPPER %s TO %s WITH GRANT OPTION",
						   quote_identifier(object_name(class, object)),
						   quote_identifier(howdah_superuser_role));
	SPI_connect();
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run \"%s\"", command);
	SPI_finish();
}
