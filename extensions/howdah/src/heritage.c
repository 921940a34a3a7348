/*-------------------------------------------------------------------------
 *
 * heritage.c
 *		Subscriptions that came with the data of another database.
 *
 * A read replica that is promoted has the subscriptions of its source, with the
 * same slots at the publishers. Only one of the two can receive by a slot, and
 * whoever wins takes rows that the other one then misses. Workers would begin in
 * the moment of the promotion, before anybody could disable them.
 *
 * So the primary's agent writes beside the data whose subscriptions they are, as
 * the comment of the platform's database: shared catalogs can be read from every
 * database, and go where the data go. While it is another name than
 * howdah.database, which the configuration has, no worker receives anything. Then
 * the agent disables the subscriptions, and writes its own name. A standby that takes
 * over in the same database has the same name.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_database.h"
#include "catalog/pg_shdescription.h"
#include "commands/dbcommands.h"
#include "replication/logicalworker.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/rel.h"

/* where the comment is, and how it begins (internal/engine/postgres/heritage.go) */
#define PLATFORM_DATABASE "rdsadmin"
#define BEGINS "{\"database\":\""

static char *database;

static void at_transaction_event(XactEvent event, void *arg);
static char *platform_comment(void);
static bool is_ours(const char *comment);

void
howdah_heritage_init(void)
{
	DefineCustomStringVariable("howdah.database",
							   "The platform's name of the database that the server belongs to.",
							   NULL, &database, "",
							   PGC_SIGHUP, 0, NULL, NULL, NULL);
	RegisterXactCallback(at_transaction_event, NULL);
}

/* XactCallback: a worker ends its first transaction before it connects to the publisher */
static void
at_transaction_event(XactEvent event, void *arg)
{
	static bool looked = false;
	char	   *comment;

	if (event != XACT_EVENT_PRE_COMMIT || looked || !IsLogicalWorker() ||
		database[0] == '\0')
		return;
	comment = platform_comment();
	if (comment != NULL && !is_ours(comment))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("subscriptions came with the data of another database, and are about to be disabled")));
	looked = true;
}

/* the comment of the platform's database, or NULL */
static char *
platform_comment(void)
{
	Relation	rel;
	SysScanDesc scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	char	   *comment = NULL;
	Oid			platform = get_database_oid(PLATFORM_DATABASE, true);

	if (!OidIsValid(platform))
		return NULL;
	ScanKeyInit(&keys[0], Anum_pg_shdescription_objoid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(platform));
	ScanKeyInit(&keys[1], Anum_pg_shdescription_classoid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(DatabaseRelationId));
	rel = table_open(SharedDescriptionRelationId, AccessShareLock);
	scan = systable_beginscan(rel, SharedDescriptionObjIndexId, true, NULL, 2, keys);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		bool		is_null;
		Datum		value = heap_getattr(tuple, Anum_pg_shdescription_description,
										 RelationGetDescr(rel), &is_null);

		if (!is_null)
			comment = TextDatumGetCString(value);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return comment;
}

/* what does not begin so says nothing of subscriptions */
static bool
is_ours(const char *comment)
{
	size_t		length = strlen(BEGINS);

	if (strncmp(comment, BEGINS, length) != 0)
		return true;
	comment += length;
	length = strlen(database);
	return strncmp(comment, database, length) == 0 && comment[length] == '"';
}
