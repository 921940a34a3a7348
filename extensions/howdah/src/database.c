/*-------------------------------------------------------------------------
 *
 * database.c
 *		Guard of the platform's databases.
 *
 * PostgreSQL already keeps users from what they do not own. The guard says so
 * whoever owns a protected database, and for copies of it.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "commands/defrem.h"

static void check_database(const char *name, const char *action);
static void check_object(ObjectType type, Node *object, const char *action);
static void check_create(CreatedbStmt *stmt);

/* guard: see the head of this file */
bool
howdah_guard_database(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	switch (nodeTag(node))
	{
		case T_CreatedbStmt:
			check_create((CreatedbStmt *) node);
			break;
		case T_AlterDatabaseStmt:
			check_database(((AlterDatabaseStmt *) node)->dbname, "alter");
			break;
		case T_AlterDatabaseRefreshCollStmt:
			check_database(((AlterDatabaseRefreshCollStmt *) node)->dbname, "alter");
			break;
		case T_AlterDatabaseSetStmt:
			check_database(((AlterDatabaseSetStmt *) node)->dbname, "alter");
			break;
		case T_DropdbStmt:
			check_database(((DropdbStmt *) node)->dbname, "drop");
			break;
		case T_RenameStmt:
			if (((RenameStmt *) node)->renameType == OBJECT_DATABASE)
			{
				check_database(((RenameStmt *) node)->subname, "rename");
				check_database(((RenameStmt *) node)->newname, "create");
			}
			break;
		case T_AlterOwnerStmt:
			check_object(((AlterOwnerStmt *) node)->objectType,
						 ((AlterOwnerStmt *) node)->object, "alter");
			break;
		case T_CommentStmt:
			check_object(((CommentStmt *) node)->objtype,
						 ((CommentStmt *) node)->object, "comment on");
			break;
		case T_SecLabelStmt:
			check_object(((SecLabelStmt *) node)->objtype,
						 ((SecLabelStmt *) node)->object, "label");
			break;
		default:
			break;
	}
	return false;
}

static void
check_database(const char *name, const char *action)
{
	if (howdah_listed(howdah_protected_databases, name))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to %s database \"%s\"", action, name),
				 errdetail("The database belongs to the platform.")));
}

static void
check_object(ObjectType type, Node *object, const char *action)
{
	if (type == OBJECT_DATABASE)
		check_database(strVal(object), action);
}

/* CREATE DATABASE: neither by such a name nor as a copy of one */
static void
check_create(CreatedbStmt *stmt)
{
	ListCell   *lc;

	check_database(stmt->dbname, "create");
	foreach(lc, stmt->options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (strcmp(option->defname, "template") == 0 && option->arg != NULL)
			check_database(defGetString(option), "copy");
	}
}
