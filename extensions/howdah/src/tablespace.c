/*-------------------------------------------------------------------------
 *
 * tablespace.c
 *		CREATE TABLESPACE for master users.
 *
 * Whatever location is asked for, the tablespace goes into the data
 * directory, as it does on RDS: PostgreSQL's in-place tablespaces, which need
 * no directory prepared on the standbys. Off by default (howdah.tablespaces),
 * because of the programs around PostgreSQL: pgBackRest, to 2.60 at least,
 * stops with an error when pg_tblspc holds anything but symbolic links, so a
 * user could end the backups; and pg_rewind of 15 cannot handle them, so a
 * failed primary could not come back.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "miscadmin.h"

static RoleSpec *owner_of(CreateTableSpaceStmt *stmt);

/* guard: see the head of this file */
bool
howdah_guard_tablespace(UtilityCall *call)
{
	CreateTableSpaceStmt *stmt;

	if (!IsA(call->pstmt->utilityStmt, CreateTableSpaceStmt) ||
		!howdah_has_superuser_role())
		return false;
	if (!howdah_tablespaces)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("tablespaces are not available on this instance"),
				 errhint("All storage of an instance is one volume; leave out the tablespace.")));

	stmt = (CreateTableSpaceStmt *) howdah_private_copy(call);
	stmt->owner = owner_of(stmt);
	if (stmt->location[0] != '\0')
		ereport(NOTICE,
				(errmsg("location \"%s\" is not used: tablespaces are kept in the data directory",
						stmt->location)));
	stmt->location = pstrdup("");
	howdah_run_call_as_admin(call);
	return true;
}

/* who is to own the tablespace: the user, or a role that is theirs to be */
static RoleSpec *
owner_of(CreateTableSpaceStmt *stmt)
{
	Oid			role = stmt->owner ?
		get_rolespec_oid(stmt->owner, false) : GetUserId();

	if (!member_can_set_role(GetUserId(), role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be able to SET ROLE \"%s\"",
						GetUserNameFromId(role, false))));

	return howdah_named_role(role);
}
