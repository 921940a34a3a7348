/*-------------------------------------------------------------------------
 *
 * subscription.c
 *		Subscriptions of master users, in PostgreSQL 15.
 *
 * From 16 on, pg_create_subscription lets users subscribe, and PostgreSQL sees
 * to it that they log in at the publisher by a password of theirs. In 15 only a
 * superuser creates subscriptions, though their workers respect the rights of
 * an owner who is none. So a master user's CREATE SUBSCRIPTION runs as the admin
 * role, and the user owns what it made. Three things of 16 are added:
 *
 * - The connection string has a password, and the publisher asked for it. A
 *   server connects by the name of its operating-system user, may have
 *   certificates, and is trusted by its neighbours: without a password users
 *   would borrow that. The string is looked at when it is given; whether the
 *   password was asked for, each time that a session or a worker connects.
 * - CREATE on the database is needed.
 * - Nobody gives a subscription to a superuser. PostgreSQL 15 would take no
 *   other owner, and does not ask whether the user may become that role: the
 *   worker would then write to other users' tables whatever the publisher says,
 *   and run the code of their triggers as a superuser. System tables are no
 *   targets, whoever the owner is.
 *
 * Event triggers of users do not fire for CREATE SUBSCRIPTION in 15.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#if PG_VERSION_NUM < 160000

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_subscription.h"
#include "commands/dbcommands.h"
#include "libpq-fe.h"
#include "miscadmin.h"
#include "replication/logicalworker.h"
#include "replication/walreceiver.h"
#include "utils/syscache.h"

/* a CREATE SUBSCRIPTION that is to run, and who is to own what it makes */
typedef struct Creation
{
	UtilityCall *call;
	Oid			user;
} Creation;

/*
 * How a connection of libpqwalreceiver begins. The library keeps the rest of it
 * to itself, and has not changed this in any release of 15.
 */
typedef struct Connection
{
	PGconn	   *libpq;
} Connection;

/* the functions of libpqwalreceiver, and the same with a connect of ours */
static WalReceiverFunctionsType *plain = NULL;
static WalReceiverFunctionsType watched;

/* does this worker's subscription belong to a superuser? */
static bool of_superuser = false;

static void guard_create(UtilityCall *call);
static void create_and_hand_over(void *arg);
static void hand_over(const char *name, Oid owner);
static void check_new_owner(AlterOwnerStmt *stmt);
static void check_password(const char *conninfo);
static bool gives_password(const char *conninfo);
static void watch_connections(void);
static WalReceiverConn *connect_by_password(const char *conninfo, bool logical,
											const char *appname, char **err);
static bool needs_password(void);
static void at_transaction_event(XactEvent event, void *arg);

void
howdah_subscription_init(void)
{
	RegisterXactCallback(at_transaction_event, NULL);
}

/* guard: see the head of this file; connection.c has looked at the options */
bool
howdah_guard_subscription(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	switch (nodeTag(node))
	{
		case T_CreateSubscriptionStmt:
			if (!howdah_has_superuser_role())
				return false;	/* PostgreSQL refuses it */
			guard_create(call);
			return true;
		case T_AlterSubscriptionStmt:
			watch_connections();
			if (((AlterSubscriptionStmt *) node)->conninfo != NULL)
				check_password(((AlterSubscriptionStmt *) node)->conninfo);
			return false;
		case T_DropSubscriptionStmt:
			watch_connections();
			return false;
		case T_AlterOwnerStmt:
			check_new_owner((AlterOwnerStmt *) node);
			return false;
		default:
			return false;
	}
}

/* CREATE SUBSCRIPTION of a master user */
static void
guard_create(UtilityCall *call)
{
	CreateSubscriptionStmt *stmt = (CreateSubscriptionStmt *) call->pstmt->utilityStmt;
	Creation	creation = {call, GetUserId()};
	AclResult	result = object_aclcheck(DatabaseRelationId, MyDatabaseId,
										 creation.user, ACL_CREATE);

	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_DATABASE, get_database_name(MyDatabaseId));
	check_password(stmt->conninfo);
	watch_connections();
	howdah_run_as_admin(create_and_hand_over, &creation);
}

/* as the admin role: the launcher sees the subscription when it is the user's */
static void
create_and_hand_over(void *arg)
{
	Creation   *mine = arg;
	CreateSubscriptionStmt *stmt = (CreateSubscriptionStmt *) mine->call->pstmt->utilityStmt;

	howdah_run(mine->call);
	CommandCounterIncrement();
	hand_over(stmt->subname, mine->user);
	CommandCounterIncrement();
}

/* change the owner of a subscription, which the command does for superusers alone */
static void
hand_over(const char *name, Oid owner)
{
	Relation	rel = table_open(SubscriptionRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy2(SUBSCRIPTIONNAME,
											ObjectIdGetDatum(MyDatabaseId),
											CStringGetDatum(name));
	Form_pg_subscription form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "could not find subscription \"%s\"", name);
	form = (Form_pg_subscription) GETSTRUCT(tuple);
	form->subowner = owner;
	CatalogTupleUpdate(rel, &tuple->t_self, tuple);
	changeDependencyOnOwner(SubscriptionRelationId, form->oid, owner);
	table_close(rel, RowExclusiveLock);
}

/* ALTER SUBSCRIPTION ... OWNER TO */
static void
check_new_owner(AlterOwnerStmt *stmt)
{
	Oid			owner;

	if (stmt->objectType != OBJECT_SUBSCRIPTION)
		return;
	owner = get_rolespec_oid(stmt->newowner, true);
	if (OidIsValid(owner) && superuser_arg(owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to change owner of subscription \"%s\"",
						strVal(stmt->object)),
				 errdetail("The new owner would be a superuser.")));
}

static void
check_password(const char *conninfo)
{
	if (!gives_password(conninfo))
		ereport(ERROR,
				(errcode(ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED),
				 errmsg("password is required"),
				 errdetail("Non-superusers must provide a password in the connection string.")));
}

/* has this connection string a password? PostgreSQL complains of a wrong string */
static bool
gives_password(const char *conninfo)
{
	PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
	bool		found = options == NULL;

	for (PQconninfoOption *o = options; o != NULL && o->keyword != NULL; o++)
		if (strcmp(o->keyword, "password") == 0 &&
			o->val != NULL && o->val[0] != '\0')
			found = true;
	PQconninfoFree(options);
	return found;
}

/* from here on this process connects to publishers by our function */
static void
watch_connections(void)
{
	load_file("libpqwalreceiver", false);
	if (WalReceiverFunctions == &watched)
		return;
	plain = WalReceiverFunctions;
	watched = *plain;
	watched.walrcv_connect = connect_by_password;
	WalReceiverFunctions = &watched;
}

/*
 * walrcv_connect: who is no superuser has logged in by a password of the
 * connection string, or not at all. The names of functions are in parentheses
 * where macros have the same.
 */
static WalReceiverConn *
connect_by_password(const char *conninfo, bool logical, const char *appname,
					char **err)
{
	bool		by_password = logical && needs_password();
	WalReceiverConn *conn;

	if (by_password && !gives_password(conninfo))
	{
		*err = pstrdup("password is required in the connection string");
		return NULL;
	}
	conn = (plain->walrcv_connect) (conninfo, logical, appname, err);
	if (conn == NULL || !by_password ||
		PQconnectionUsedPassword(((Connection *) conn)->libpq))
		return conn;
	(plain->walrcv_disconnect) (conn);
	*err = pstrdup("password is required, and the publisher did not ask for it");
	return NULL;
}

/* workers connect outside of transactions, where no catalog may be read */
static bool
needs_password(void)
{
	if (IsTransactionState())
		return howdah_confined() || !superuser();
	return !of_superuser;
}

/* XactCallback: a worker ends its first transaction before it connects */
static void
at_transaction_event(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_PRE_COMMIT || !IsLogicalWorker())
		return;
	of_superuser = superuser();
	watch_connections();
}

#else							/* 16 and later */

void
howdah_subscription_init(void)
{
}

/* guard: PostgreSQL does all of it by itself */
bool
howdah_guard_subscription(UtilityCall *call)
{
	return false;
}

#endif
