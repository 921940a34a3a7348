/*-------------------------------------------------------------------------
 *
 * lock.c
 *		Guard of LOCK TABLE on views that lead to system catalogs.
 *
 * LOCK of a view locks all tables below it, with the rights of the view's
 * owner. The views of pg_catalog and information_schema belong to a superuser,
 * and members of pg_write_all_data have all rights that LOCK asks for: by
 * LOCK pg_roles they would lock pg_authid, and stop all logins (see catalog.c).
 * That is refused, for views of users on top of such views too.
 *
 * What was looked at must be what PostgreSQL then locks: it gets the full name,
 * and until then nobody can exchange what has it. The relations are locked as
 * a reader locks them, and so is the schema, against being renamed.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "nodes/nodeFuncs.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static void check_lock(UtilityCall *call);
static void pin_name(RangeVar *name, Oid relation);
static void check_view(Oid relation, char *name);
static bool check_query(Node *node, void *name);

/* guard: see the head of this file */
bool
howdah_guard_lock(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	/* what reading and writing take stands in nobody's way */
	if (IsA(node, LockStmt) && ((LockStmt *) node)->mode > RowExclusiveLock)
		check_lock(call);
	else if (IsA(node, RenameStmt) &&
			 ((RenameStmt *) node)->renameType == OBJECT_SCHEMA)
	{
		Oid			schema = get_namespace_oid(((RenameStmt *) node)->subname, true);

		if (OidIsValid(schema))
			LockDatabaseObject(NamespaceRelationId, schema, 0, AccessExclusiveLock);
	}
	return false;
}

static void
check_lock(UtilityCall *call)
{
	LockStmt   *stmt = (LockStmt *) howdah_private_copy(call);
	ListCell   *lc;

	foreach(lc, stmt->relations)
	{
		RangeVar   *name = lfirst_node(RangeVar, lc);
		Oid			relation = RangeVarGetRelid(name, AccessShareLock, true);

		/* that there is none is for PostgreSQL to say */
		if (!OidIsValid(relation))
			continue;
		pin_name(name, relation);
		if (get_rel_relkind(relation) == RELKIND_VIEW)
			check_view(relation, name->relname);
	}
}

/* write down a relation's full name, which stays true until the transaction ends */
static void
pin_name(RangeVar *name, Oid relation)
{
	Oid			schema = get_rel_namespace(relation);

	if (isTempNamespace(schema))
		return;
	LockDatabaseObject(NamespaceRelationId, schema, 0, AccessShareLock);
	name->schemaname = get_namespace_name(schema);
}

/* refuse a view that leads to a catalog; name is that of the outermost */
static void
check_view(Oid relation, char *name)
{
	Relation	view = table_open(relation, AccessShareLock);

	(void) check_query((Node *) get_view_query(view), name);
	table_close(view, NoLock);
}

/* walker: refuse catalogs among the relations of a query, and views that lead to some */
static bool
check_query(Node *node, void *name)
{
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, check_query, name);
	foreach(lc, ((Query *) node)->rtable)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, lc);

		if (entry->rtekind != RTE_RELATION)
			continue;
		if (IsCatalogRelationOid(entry->relid))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied to lock view \"%s\"", (char *) name),
					 errdetail("It reads the system catalog \"%s\".",
							   get_rel_name(entry->relid))));
		/* 15 has the view itself there, as OLD and NEW */
		if (entry->relkind == RELKIND_VIEW && entry->inFromCl)
			check_view(entry->relid, name);
	}
	return query_tree_walker((Query *) node, check_query, name,
							 QTW_IGNORE_JOINALIASES);
}
