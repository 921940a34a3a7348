/*-------------------------------------------------------------------------
 *
 * role.c
 *		Guard of roles.
 *
 * In PostgreSQL 15 a role with CREATEROLE may hand any role that is not a
 * superuser to anyone, itself included: pg_execute_server_program and with
 * it the operating-system user, or the platform's replication role. So, for
 * users who are not superusers:
 *
 * - protected roles cannot be changed, dropped, handed out, or given
 *   memberships;
 * - a role that is a member of a protected role, on whatever path, or of one
 *   with an attribute that only superusers give, has that role's power, and
 *   is off limits to whoever lacks it;
 * - the platform's group roles (master users, IAM login, ...) may be handed
 *   out by master users who manage roles.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/varlena.h"

/* names of roles that only the platform may create begin so */
#define RESERVED_PREFIX "rds_"

/*
 * Group roles that mark a user for the platform and carry no power over
 * other users. Master users hand them out, and the master users' role too.
 */
static const char *const marker_roles[] = {
	"rds_iam", "rds_password", "rds_replication"
};

static bool is_marker_role(const char *name);
static bool has_power_of(Oid role, const char *protected_name);
static const char *power_by_attribute(Oid role);
static const char *power_beyond_user(Oid role);
static void check_role(Oid role, const char *action);
static void check_rolespec(RoleSpec *spec, const char *action);
static void check_rolespecs(List *specs, const char *action);
static void check_jobs(List *specs);
static void check_members(List *specs);
static void check_new_name(const char *name);
static void check_attribute(DefElem *option);
static void check_create(CreateRoleStmt *stmt);
static void check_alter(AlterRoleStmt *stmt);
static void check_owned(List *specs, RoleSpec *new_owner);
static bool guard_grant(UtilityCall *call);
static void check_granter(GrantRoleStmt *stmt);

/* guard: see the head of this file */
bool
howdah_guard_role(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	switch (nodeTag(node))
	{
		case T_CreateRoleStmt:
			check_create((CreateRoleStmt *) node);
			break;
		case T_AlterRoleStmt:
			check_alter((AlterRoleStmt *) node);
			break;
		case T_AlterRoleSetStmt:
			if (((AlterRoleSetStmt *) node)->role)
				check_rolespec(((AlterRoleSetStmt *) node)->role, "alter");
			break;
		case T_DropRoleStmt:
			check_rolespecs(((DropRoleStmt *) node)->roles, "drop");
			check_jobs(((DropRoleStmt *) node)->roles);
			break;
		case T_GrantRoleStmt:
			return guard_grant(call);
		case T_DropOwnedStmt:
			check_owned(((DropOwnedStmt *) node)->roles, NULL);
			break;
		case T_ReassignOwnedStmt:
			check_owned(((ReassignOwnedStmt *) node)->roles,
						((ReassignOwnedStmt *) node)->newrole);
			break;
		case T_RenameStmt:
			if (((RenameStmt *) node)->renameType == OBJECT_ROLE)
			{
				check_role(get_role_oid(((RenameStmt *) node)->subname, true),
						   "rename");
				check_new_name(((RenameStmt *) node)->newname);
				howdah_check_no_jobs(((RenameStmt *) node)->subname, "renamed");
			}
			break;
		case T_CommentStmt:
			if (((CommentStmt *) node)->objtype == OBJECT_ROLE)
				check_role(get_role_oid(strVal(((CommentStmt *) node)->object),
										true), "comment on");
			break;
		case T_SecLabelStmt:
			if (((SecLabelStmt *) node)->objtype == OBJECT_ROLE)
				check_role(get_role_oid(strVal(((SecLabelStmt *) node)->object),
										true), "label");
			break;
		default:
			break;
	}
	return false;
}

/* is this one of the platform's roles, by its name? */
bool
howdah_role_is_protected(Oid role)
{
	char	   *name = GetUserNameFromId(role, true);

	return name != NULL && howdah_is_protected_name(name);
}

/* is this the name of one of the platform's roles, be it there or not? */
bool
howdah_is_protected_name(const char *name)
{
	return strcmp(name, howdah_admin_role) == 0 ||
		strcmp(name, howdah_superuser_role) == 0 ||
		howdah_listed(howdah_protected_roles, name);
}

/* the role by its name: CURRENT_USER is somebody else to what runs as the admin role */
RoleSpec *
howdah_named_role(Oid role)
{
	RoleSpec   *spec = makeNode(RoleSpec);

	spec->roletype = ROLESPEC_CSTRING;
	spec->rolename = GetUserNameFromId(role, false);
	spec->location = -1;
	return spec;
}

static bool
is_marker_role(const char *name)
{
	for (int i = 0; i < lengthof(marker_roles); i++)
		if (strcmp(name, marker_roles[i]) == 0)
			return true;
	return false;
}

/* would whoever becomes this role hold that protected one? */
static bool
has_power_of(Oid role, const char *protected_name)
{
	Oid			protected_role = get_role_oid(protected_name, true);

	return OidIsValid(protected_role) &&
		is_member_of_role_nosuper(role, protected_role);
}

/*
 * The protected role that this one brings and the current user lacks, or
 * NULL. Marker roles do not count: an application may manage the users that
 * a master user marked.
 */
static const char *
power_beyond_user(Oid role)
{
	char	   *copy = pstrdup(howdah_protected_roles);
	List	   *names;
	ListCell   *lc;

	if (has_power_of(role, howdah_superuser_role) && !howdah_has_superuser_role())
		return howdah_superuser_role;
	if (!SplitIdentifierString(copy, ',', &names))
		elog(ERROR, "invalid list \"%s\"", howdah_protected_roles);
	foreach(lc, names)
	{
		const char *name = lfirst(lc);

		if (!is_marker_role(name) && strcmp(name, howdah_superuser_role) != 0 &&
			has_power_of(role, name))
			return name;
	}
	return power_by_attribute(role);
}

/*
 * A role with SUPERUSER, REPLICATION or BYPASSRLS that this one is or may
 * become, or NULL.
 */
static const char *
power_by_attribute(Oid role)
{
	Relation	rel = table_open(AuthIdRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	const char *found = NULL;
	HeapTuple	tuple;

	while (found == NULL && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_authid auth = (Form_pg_authid) GETSTRUCT(tuple);

		if ((auth->rolsuper || auth->rolreplication || auth->rolbypassrls) &&
			is_member_of_role_nosuper(role, auth->oid))
			found = pstrdup(NameStr(auth->rolname));
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return found;
}

/*
 * Refuse to touch this role, unless it is the user's to manage. Roles that
 * do not exist are left to PostgreSQL.
 */
static void
check_role(Oid role, const char *action)
{
	const char *power;

	if (!OidIsValid(role))
		return;
	if (howdah_role_is_protected(role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to %s role \"%s\"",
						action, GetUserNameFromId(role, false)),
				 errdetail("The role belongs to the platform.")));
	power = power_beyond_user(role);
	if (power != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to %s role \"%s\"",
						action, GetUserNameFromId(role, false)),
				 errdetail("The role has the rights of \"%s\".", power)));
}

static void
check_rolespec(RoleSpec *spec, const char *action)
{
	if (spec->roletype != ROLESPEC_PUBLIC)
		check_role(get_rolespec_oid(spec, true), action);
}

static void
check_rolespecs(List *specs, const char *action)
{
	ListCell   *lc;

	foreach(lc, specs)
		check_rolespec(lfirst_node(RoleSpec, lc), action);
}

/*
 * Refuse to change what the platform's roles are members of: to make rdsadmin
 * a member of rds_iam would change how it logs in.
 */
static void
check_members(List *specs)
{
	ListCell   *lc;

	foreach(lc, specs)
	{
		RoleSpec   *spec = lfirst_node(RoleSpec, lc);
		Oid			role;

		if (spec->roletype == ROLESPEC_PUBLIC)
			continue;
		role = get_rolespec_oid(spec, true);
		if (OidIsValid(role) && howdah_role_is_protected(role))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied to change memberships of role \"%s\"",
							GetUserNameFromId(role, false)),
					 errdetail("The role belongs to the platform.")));
	}
}

/* refuse names that are the platform's, also before it has created the role */
static void
check_new_name(const char *name)
{
	if (howdah_is_protected_name(name) ||
		strncmp(name, RESERVED_PREFIX, strlen(RESERVED_PREFIX)) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("role name \"%s\" is reserved", name),
				 errdetail("Names of the platform's roles, and all that begin with \"%s\", are reserved.",
						   RESERVED_PREFIX)));
}

/*
 * Refuse the attributes that only superusers may give, in every release: from
 * 16 on PostgreSQL lets a holder pass two of them on.
 */
static void
check_attribute(DefElem *option)
{
	if ((strcmp(option->defname, "superuser") == 0 ||
		 strcmp(option->defname, "isreplication") == 0 ||
		 strcmp(option->defname, "bypassrls") == 0) &&
		boolVal(option->arg))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to give a role the attribute %s",
						strcmp(option->defname, "superuser") == 0 ? "SUPERUSER" :
						strcmp(option->defname, "bypassrls") == 0 ? "BYPASSRLS" :
						"REPLICATION")));
}

/* CREATE ROLE, CREATE USER, CREATE GROUP */
static void
check_create(CreateRoleStmt *stmt)
{
	ListCell   *lc;

	check_new_name(stmt->role);
	foreach(lc, stmt->options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		check_attribute(option);
		if (strcmp(option->defname, "addroleto") == 0)
			check_rolespecs((List *) option->arg, "grant");
		else if (strcmp(option->defname, "rolemembers") == 0 ||
				 strcmp(option->defname, "adminmembers") == 0)
			check_members((List *) option->arg);
	}
}

/* ALTER ROLE, ALTER USER, ALTER GROUP */
static void
check_alter(AlterRoleStmt *stmt)
{
	ListCell   *lc;

	check_rolespec(stmt->role, "alter");
	foreach(lc, stmt->options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		check_attribute(option);
		if (strcmp(option->defname, "rolemembers") == 0)
			check_members((List *) option->arg);
	}
}

/*
 * DROP OWNED, REASSIGN OWNED. A member of a role may do this to it, and master
 * users are members of theirs, on which the platform's grants hang.
 */
static void
check_owned(List *specs, RoleSpec *new_owner)
{
	ListCell   *lc;

	foreach(lc, specs)
	{
		Oid			role = get_rolespec_oid(lfirst_node(RoleSpec, lc), true);

		if (OidIsValid(role) && howdah_role_is_protected(role))
			check_role(role, "drop or reassign objects of");
	}
	if (new_owner != NULL)
	{
		Oid			role = get_rolespec_oid(new_owner, true);

		if (OidIsValid(role) && howdah_role_is_protected(role))
			check_role(role, "give objects to");
	}
}

/* GRANT and REVOKE of memberships */
static bool
guard_grant(UtilityCall *call)
{
	GrantRoleStmt *stmt = (GrantRoleStmt *) call->pstmt->utilityStmt;
	ListCell   *lc;
	int			groups = 0;

	check_members(stmt->grantee_roles);
	foreach(lc, stmt->granted_roles)
	{
		const char *name = lfirst_node(AccessPriv, lc)->priv_name;

		if (name == NULL)
			continue;
		if (strcmp(name, howdah_superuser_role) == 0 || is_marker_role(name))
			groups++;
		else
			check_role(get_role_oid(name, true),
					   stmt->is_grant ? "grant" : "revoke");
	}
	if (groups == 0)
		return false;

	check_granter(stmt);
	if (groups < list_length(stmt->granted_roles))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot grant or revoke roles of the platform together with other roles"),
				 errhint("Use a statement of its own for each kind.")));

	/*
	 * As the admin role: from 16 on the user would need ADMIN OPTION, which
	 * only a member can have, and a member of rds_iam logs in by IAM.
	 */
	stmt = (GrantRoleStmt *) howdah_private_copy(call);
	foreach(lc, stmt->grantee_roles)
	{
		RoleSpec   *spec = lfirst_node(RoleSpec, lc);

		if (spec->roletype != ROLESPEC_PUBLIC && spec->roletype != ROLESPEC_CSTRING)
			lfirst(lc) = howdah_named_role(get_rolespec_oid(spec, false));
	}
	howdah_run_call_as_admin(call);
	return true;
}

/* only master users who manage roles may hand out the platform's groups */
static void
check_granter(GrantRoleStmt *stmt)
{
	Oid			group = get_role_oid(howdah_superuser_role, true);

	if (!howdah_has_superuser_role() ||
		!(has_createrole_privilege(GetUserId()) ||
		  is_admin_of_role(GetUserId(), group)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to grant or revoke roles of the platform"),
				 errdetail("This takes membership in \"%s\" and CREATEROLE.",
						   howdah_superuser_role)));
	if (stmt->grantor != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot choose the grantor of roles of the platform")));
}

/* roles that run jobs of pg_cron are not dropped */
static void
check_jobs(List *specs)
{
	ListCell   *lc;

	foreach(lc, specs)
	{
		Oid			role = get_rolespec_oid(lfirst_node(RoleSpec, lc), true);

		if (OidIsValid(role))
			howdah_check_no_jobs(GetUserNameFromId(role, false), "dropped");
	}
}
