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
 * The same goes for tables of extensions that the platform keeps for all users:
 * pg_cron lets everybody delete from its table of runs, to tidy up, and whoever may
 * delete may lock. All jobs would wait, for as long as a prepared transaction
 * holds the lock.
 *
 * What was looked at must be what PostgreSQL then locks. So the relation is locked
 * here already, as the statement asks and with the rights that it asks for: PostgreSQL,
 * which does the same again, finds the lock held and has nothing to wait for. It gets
 * the full name, and the schema is locked against being renamed. Views below are
 * locked as a reader locks them.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/relation.h"
#include "catalog/catalog.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "extension_grant.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* one LOCK statement on its way through views */
typedef struct Walk
{
	const LockStmt *stmt;
	char	   *name;			/* of the outermost view */
	List	   *seen;			/* views that were looked at: they may be in a circle */
	bool		keep;			/* their locks, which hold what was seen */
} Walk;

static void check_lock(UtilityCall *call);
static void may_lock(const RangeVar *name, Oid relation, Oid old, void *arg);
static bool is_kept(Oid relation);
static void pin_name(RangeVar *name, Oid relation);
static void check_view(Oid relation, Walk *walk);
static bool check_query(Node *node, void *arg);
static void lock_own_schema(const char *name);

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
		lock_own_schema(((RenameStmt *) node)->subname);
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
		Oid			relation = RangeVarGetRelidExtended(name, stmt->mode,
														RVR_MISSING_OK | (stmt->nowait ? RVR_NOWAIT : 0),
														may_lock, stmt);

		/* that there is none is for PostgreSQL to say */
		if (!OidIsValid(relation))
			continue;
		pin_name(name, relation);
		if (get_rel_relkind(relation) == RELKIND_VIEW)
		{
			Walk		walk = {stmt, name->relname, NIL, true};

			check_view(relation, &walk);
		}
	}
}

/* before a relation is locked: refuse whom PostgreSQL would refuse, in its words */
static void
may_lock(const RangeVar *name, Oid relation, Oid old, void *arg)
{
	AclMode		any = ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE;
	char		kind = OidIsValid(relation) ? get_rel_relkind(relation) : 0;

#ifdef ACL_MAINTAIN
	any |= ACL_MAINTAIN;
#endif
	if (kind == 0)
		return;
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_VIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("cannot lock relation \"%s\"", name->relname),
				 errdetail_relkind_not_supported(kind)));
	if (pg_class_aclmask(relation, GetUserId(), any, ACLMASK_ANY) == 0)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(kind), name->relname);
	if (is_kept(relation))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to lock table \"%s\"", name->relname),
				 errdetail("It belongs to an extension that serves all users.")));

	/* nobody waits for a lock of what is refused; what holds is seen once it is locked */
	if (kind == RELKIND_VIEW)
	{
		Walk		walk = {(LockStmt *) arg, name->relname, NIL, false};

		check_view(relation, &walk);
	}
}

/* does the relation belong to an extension of which the admin role stays the owner? */
static bool
is_kept(Oid relation)
{
	Oid			extension = getExtensionOfObject(RelationRelationId, relation);
	char	   *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	return name != NULL && howdah_keeps_extension(name);
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

/* lock a schema that is about to be renamed: not for whoever may not rename it */
static void
lock_own_schema(const char *name)
{
	Oid			schema = get_namespace_oid(name, true);

	if (!OidIsValid(schema) ||
		!object_ownercheck(NamespaceRelationId, schema, GetUserId()))
		return;
	LockDatabaseObject(NamespaceRelationId, schema, 0, AccessExclusiveLock);
	if (get_namespace_oid(name, true) != schema)
		lock_own_schema(name);	/* it has another name by now */
}

/* refuse a view that leads to a catalog */
static void
check_view(Oid relation, Walk *walk)
{
	Relation	view;

	check_stack_depth();
	if (list_member_oid(walk->seen, relation))
		return;
	walk->seen = lappend_oid(walk->seen, relation);
	if (!walk->stmt->nowait)
		LockRelationOid(relation, AccessShareLock);
	else if (!ConditionalLockRelationOid(relation, AccessShareLock))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain lock on relation \"%s\"", get_rel_name(relation))));
	view = try_relation_open(relation, NoLock);
	if (view == NULL)
		return;					/* it was dropped meanwhile */
	(void) check_query((Node *) get_view_query(view), walk);
	relation_close(view, walk->keep ? NoLock : AccessShareLock);
}

/* walker: refuse catalogs among the relations of a query, and views that lead to some */
static bool
check_query(Node *node, void *arg)
{
	Walk	   *walk = arg;
	ListCell   *lc;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, check_query, arg);
	foreach(lc, ((Query *) node)->rtable)
	{
		RangeTblEntry *entry = lfirst_node(RangeTblEntry, lc);

		if (entry->rtekind != RTE_RELATION)
			continue;
		if (is_kept(entry->relid))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied to lock view \"%s\"", walk->name),
					 errdetail("It reads the table \"%s\" of an extension that serves all users.",
							   get_rel_name(entry->relid))));
		if (IsCatalogRelationOid(entry->relid))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied to lock view \"%s\"", walk->name),
					 errdetail("It reads the system catalog \"%s\".",
							   get_rel_name(entry->relid))));
		/* 15 has the view itself there, as OLD and NEW */
		if (entry->relkind == RELKIND_VIEW && entry->inFromCl)
			check_view(entry->relid, walk);
	}
	return query_tree_walker((Query *) node, check_query, arg,
							 QTW_IGNORE_JOINALIASES);
}
