/*-------------------------------------------------------------------------
 *
 * database.c
 *		Guard of the platform's databases.
 *
 * PostgreSQL already keeps users from what they do not own. The guard says so
 * whoever owns a protected database, and for copies of it.
 *
 * The platform visits databases, which takes moments. Nobody but a superuser may
 * end its sessions, so DROP DATABASE ... WITH (FORCE) would fail at once where it
 * is there. It waits, as DROP DATABASE without that does.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/proc.h"

/* as CountOtherDBBackends() waits for sessions */
#define VISIT_TRIES 50
#define VISIT_PAUSE 100000L		/* microseconds */

static void check_database(const char *name, const char *action);
static void check_object(ObjectType type, Node *object, const char *action);
static void check_create(CreatedbStmt *stmt);
static void await_platform(DropdbStmt *stmt);
static bool platform_is_in(Oid database, Oid admin);

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
			await_platform((DropdbStmt *) node);
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

/* DROP DATABASE ... WITH (FORCE): the platform's visit ends first */
static void
await_platform(DropdbStmt *stmt)
{
	Oid			database = get_database_oid(stmt->dbname, true);
	Oid			admin = get_role_oid(howdah_admin_role, true);
	bool		force = false;
	ListCell   *lc;

	foreach(lc, stmt->options)
		force = force || strcmp(lfirst_node(DefElem, lc)->defname, "force") == 0;
	if (!force || !OidIsValid(database) || !OidIsValid(admin) ||
		!object_ownercheck(DatabaseRelationId, database, GetUserId()))
		return;
	for (int i = 0; i < VISIT_TRIES && platform_is_in(database, admin); i++)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(VISIT_PAUSE);
	}
}

/* has the admin role a session in the database? */
static bool
platform_is_in(Oid database, Oid admin)
{
	bool		found = false;

	LWLockAcquire(ProcArrayLock, LW_SHARED);
	for (int i = 0; i < ProcGlobal->allProcCount && !found; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];

		found = proc->pid != 0 && proc->databaseId == database &&
			proc->roleId == admin;
	}
	LWLockRelease(ProcArrayLock);
	return found;
}
