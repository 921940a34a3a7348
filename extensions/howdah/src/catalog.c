/*-------------------------------------------------------------------------
 *
 * catalog.c
 *		Guard of the locks of system catalogs.
 *
 * PostgreSQL asks for the locks of some statements before it asks whether
 * their user may run them: CREATE RULE, for one, waits for an exclusive lock
 * of a table that it is then refused. A lock that is waited for lets nobody
 * pass, so with a reader in front, which any user can be, it would stop all
 * statements that read the catalog: for pg_database, all logins, those of the
 * platform included. So a statement that names a system catalog where it would
 * lock more than reading does is refused before it begins, with the error that
 * PostgreSQL would have come to.
 *
 * Names are not looked up along search_path: who sets a trap could change what
 * they mean until PostgreSQL does. A name without a schema that a catalog has
 * is taken to mean it.
 *
 * Statements that PostgreSQL itself checks before they lock, and that users
 * may be allowed to run on catalogs, are left to it: LOCK, TRUNCATE, VACUUM,
 * CLUSTER, REINDEX, REFRESH, GRANT. The test (sql/catalog_locks.sql) tells if
 * that changes.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "catalog/namespace.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"

static void check_relation(RangeVar *relation);
static void check_relations(List *relations);
static void check_object(ObjectType type, Node *object);
static void check_names(List *names, int count);
static void check_elements(List *elements);
static void check_element(Node *element);
static void check_publication(List *objects);
static void check_copy(CopyStmt *stmt);
static void check_drop(DropStmt *stmt);

/* guard: see the head of this file */
bool
howdah_guard_catalog(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	switch (nodeTag(node))
	{
		case T_RuleStmt:
			check_relation(((RuleStmt *) node)->relation);
			break;
		case T_CreateTrigStmt:
			check_relation(((CreateTrigStmt *) node)->relation);
			check_relation(((CreateTrigStmt *) node)->constrrel);
			break;
		case T_CreatePolicyStmt:
			check_relation(((CreatePolicyStmt *) node)->table);
			break;
		case T_AlterPolicyStmt:
			check_relation(((AlterPolicyStmt *) node)->table);
			break;
		case T_IndexStmt:
			check_relation(((IndexStmt *) node)->relation);
			break;
		case T_CreateStatsStmt:
			check_relations(((CreateStatsStmt *) node)->relations);
			break;
		case T_AlterSeqStmt:
			check_relation(((AlterSeqStmt *) node)->sequence);
			break;
		case T_CreateStmt:
		case T_CreateForeignTableStmt:
			check_relations(((CreateStmt *) node)->inhRelations);
			check_elements(((CreateStmt *) node)->tableElts);
			check_elements(((CreateStmt *) node)->constraints);
			break;
		case T_AlterTableStmt:
			check_relation(((AlterTableStmt *) node)->relation);
			check_elements(((AlterTableStmt *) node)->cmds);
			break;
		case T_RenameStmt:
			check_relation(((RenameStmt *) node)->relation);
			break;
		case T_AlterObjectSchemaStmt:
			check_relation(((AlterObjectSchemaStmt *) node)->relation);
			break;
		case T_AlterObjectDependsStmt:
			check_relation(((AlterObjectDependsStmt *) node)->relation);
			break;
		case T_CommentStmt:
			check_object(((CommentStmt *) node)->objtype,
						 ((CommentStmt *) node)->object);
			break;
		case T_SecLabelStmt:
			check_object(((SecLabelStmt *) node)->objtype,
						 ((SecLabelStmt *) node)->object);
			break;
		case T_AlterExtensionContentsStmt:
			check_object(((AlterExtensionContentsStmt *) node)->objtype,
						 ((AlterExtensionContentsStmt *) node)->object);
			break;
		case T_DropStmt:
			check_drop((DropStmt *) node);
			break;
		case T_CreatePublicationStmt:
			check_publication(((CreatePublicationStmt *) node)->pubobjects);
			break;
		case T_AlterPublicationStmt:
			check_publication(((AlterPublicationStmt *) node)->pubobjects);
			break;
		case T_CopyStmt:
			check_copy((CopyStmt *) node);
			break;
		default:
			break;
	}
	return false;
}

/* refuse a relation, or NULL, that is a catalog, an index of one, or a view */
static void
check_relation(RangeVar *relation)
{
	if (relation == NULL ||
		(relation->schemaname != NULL &&
		 strcmp(relation->schemaname, "pg_catalog") != 0) ||
		!OidIsValid(get_relname_relid(relation->relname, PG_CATALOG_NAMESPACE)))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied: \"%s\" is a system catalog",
					relation->relname),
			 relation->schemaname != NULL ? 0 :
			 errhint("If you mean another relation of this name, write its schema.")));
}

static void
check_relations(List *relations)
{
	ListCell   *lc;

	foreach(lc, relations)
		if (IsA(lfirst(lc), RangeVar))
			check_relation(lfirst_node(RangeVar, lc));
}

/* an object by its name, which may be a relation, or something of one */
static void
check_object(ObjectType type, Node *object)
{
	switch (type)
	{
		case OBJECT_TABLE:
		case OBJECT_INDEX:
		case OBJECT_SEQUENCE:
		case OBJECT_VIEW:
		case OBJECT_MATVIEW:
		case OBJECT_FOREIGN_TABLE:
			check_names(castNode(List, object),
						list_length(castNode(List, object)));
			break;
		case OBJECT_COLUMN:
		case OBJECT_RULE:
		case OBJECT_TRIGGER:
		case OBJECT_POLICY:
		case OBJECT_TABCONSTRAINT:
			check_names(castNode(List, object),
						list_length(castNode(List, object)) - 1);
			break;
		default:
			break;
	}
}

/* the first of these names are a relation's; PostgreSQL refuses other numbers */
static void
check_names(List *names, int count)
{
	if (count >= 1 && count <= 3)
		check_relation(makeRangeVarFromNameList(list_truncate(list_copy(names),
															  count)));
}

static void
check_drop(DropStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->objects)
		check_object(stmt->removeType, lfirst(lc));
}

/* columns, constraints, and parts of ALTER TABLE */
static void
check_elements(List *elements)
{
	ListCell   *lc;

	foreach(lc, elements)
		check_element(lfirst(lc));
}

/* what an element names beside its table: parents, parts, keys of others */
static void
check_element(Node *element)
{
	if (element == NULL)
		return;
	switch (nodeTag(element))
	{
		case T_AlterTableCmd:
			check_element(((AlterTableCmd *) element)->def);
			break;
		case T_ColumnDef:
			check_elements(((ColumnDef *) element)->constraints);
			break;
		case T_Constraint:
			check_relation(((Constraint *) element)->pktable);
			break;
		case T_PartitionCmd:
			check_relation(((PartitionCmd *) element)->name);
			break;
		case T_RangeVar:
			check_relation((RangeVar *) element);
			break;
		default:
			break;
	}
}

static void
check_publication(List *objects)
{
	ListCell   *lc;

	foreach(lc, objects)
	{
		PublicationObjSpec *object = lfirst_node(PublicationObjSpec, lc);

		if (object->pubtable != NULL)
			check_relation(object->pubtable->relation);
	}
}

static void
check_copy(CopyStmt *stmt)
{
	if (stmt->is_from)
		check_relation(stmt->relation);
}
