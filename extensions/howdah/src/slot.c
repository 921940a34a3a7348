/*-------------------------------------------------------------------------
 *
 * slot.c
 *		Logical slots for members of rds_replication.
 *
 * PostgreSQL asks whoever uses a slot for the attribute REPLICATION. That one
 * also opens base backups, physical slots and the slots of everybody, so no
 * user has it. Instead slots.sql puts functions of this file in the place of
 * PostgreSQL's own, under their names. They look who calls and what slot is
 * meant, and then run PostgreSQL's as the platform's role for replication.
 * Where they are missing, PostgreSQL's own are there, and refuse.
 *
 * What users may touch are logical slots of the database that they are
 * connected to, by plugins of a list: a plugin is a library that the server
 * loads. Names that the platform gives to its slots are not for them. They
 * leave as many slots free as the platform needs for standbys, replicas and
 * backups. What holds for the functions holds for replication commands
 * (walsender.c).
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "replication/slot.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "slot.h"

/* who may, and as whom PostgreSQL's functions run */
static const char user_role[] = "rds_replication";
static const char platform_role[] = "rdsrepladmin";

#define TRANCHE "howdah slots"

/* what a backend has announced; it writes to its own */
typedef struct Claim
{
	bool		sends;			/* it is a WAL sender of a user */
	Oid			role;			/* who that is */
	bool		is_over;		/* the role was taken away; others write to this one, under the lock */
	NameData	creates;		/* a slot that it is about to create, or '' */
} Claim;

/* how PostgreSQL's functions use a slot */
typedef enum Use
{
	USE_READ,
	USE_DROP,
	USE_CREATE,
	USE_COPY
} Use;

typedef struct Call
{
	PGFunction	run;
	FunctionCallInfo fcinfo;
	Datum		result;
} Call;

static bool logical_slots;
static char *output_plugins;
static int	reserved_slots;
static int	reserved_senders;

static shmem_request_hook_type next_shmem_request;
static shmem_startup_hook_type next_shmem_startup;
static Claim *claims;
static volatile Claim *sender = NULL;	/* this backend's, if it is a WAL sender of a user */

/* this transaction has changed roles */
static bool changes_roles = false;

static void allow_plugins(void);
static void shmem_request(void);
static void shmem_startup(void);
static Claim *own_claim(void);
static LWLock *claims_lock(void);
static void give_up_claim(int code, Datum arg);
static void at_transaction_event(XactEvent event, void *arg);
static void end_claims(void);
static int	slots_of_users(void);
static bool is_platforms_name(const char *name);
static bool begins_with(const char *text, const char *prefix);
static void check_plugin(const char *plugin);
static Datum use_slot(FunctionCallInfo fcinfo, PGFunction run, Use use);
static void check_use(FunctionCallInfo fcinfo, Use use);
static void run_call(void *arg);

void
howdah_slot_init(void)
{
	DefineCustomBoolVariable("howdah.logical_slots",
							 "Users may have logical slots, and WAL senders for them.",
							 "PostgreSQL does not start with a slot where wal_level is lower.",
							 &logical_slots, false,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("howdah.output_plugins",
							   "Plugins for logical decoding that users may use.",
							   "A plugin is a library that the server loads.",
							   &output_plugins,
							   "pgoutput, test_decoding, wal2json",
							   PGC_SIGHUP, GUC_LIST_INPUT,
							   howdah_check_name_list, NULL, NULL);
	DefineCustomIntVariable("howdah.reserved_replication_slots",
							"Replication slots that users leave to the platform.",
							NULL, &reserved_slots, 20, 0, MAX_BACKENDS,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("howdah.reserved_wal_senders",
							"WAL senders that users leave to the platform.",
							NULL, &reserved_senders, 20, 0, MAX_BACKENDS,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	allow_plugins();
	howdah_clear_slots();
	next_shmem_request = shmem_request_hook;
	shmem_request_hook = shmem_request;
	next_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
	RegisterXactCallback(at_transaction_event, NULL);
}

/*
 * Newer minor releases have a list of their own, without wal2json. No user can
 * change it, and ours is looked at for each slot.
 */
static void
allow_plugins(void)
{
	static const char setting[] = "output_plugin_libraries";

	if (GetConfigOption(setting, true, false) != NULL)
		SetConfigOption(setting, output_plugins, PGC_POSTMASTER, PGC_S_DYNAMIC_DEFAULT);
}

static void
shmem_request(void)
{
	if (next_shmem_request)
		next_shmem_request();
	RequestAddinShmemSpace(mul_size(MaxBackends, sizeof(Claim)));
	RequestNamedLWLockTranche(TRANCHE, 1);
}

static void
shmem_startup(void)
{
	bool		found;

	if (next_shmem_startup)
		next_shmem_startup();
	claims = ShmemInitStruct("howdah slots",
							 mul_size(MaxBackends, sizeof(Claim)), &found);
	if (!found)
		memset(claims, 0, mul_size(MaxBackends, sizeof(Claim)));
}

/* this backend's claim, which its end gives up */
static Claim *
own_claim(void)
{
	static bool registered = false;

	if (claims == NULL || MyProcNumber < 0 || MyProcNumber >= MaxBackends)
		elog(ERROR, "howdah has no place for backend %d", (int) MyProcNumber);
	if (!registered)
	{
		before_shmem_exit(give_up_claim, (Datum) 0);
		registered = true;
	}
	return &claims[MyProcNumber];
}

static LWLock *
claims_lock(void)
{
	return &GetNamedLWLockTranche(TRANCHE)->lock;
}

/* before_shmem_exit callback */
static void
give_up_claim(int code, Datum arg)
{
	LWLockAcquire(claims_lock(), LW_EXCLUSIVE);
	memset(&claims[MyProcNumber], 0, sizeof(Claim));
	LWLockRelease(claims_lock());
}

/* may this role use logical slots, and WAL senders for them? */
bool
howdah_replicates(Oid role)
{
	Oid			group = get_role_oid(user_role, true);

	return OidIsValid(group) && has_privs_of_role(role, group);
}

/*
 * This backend becomes a WAL sender of a user; refuse if those that are left
 * are the platform's.
 */
void
howdah_claim_sender(void)
{
	Claim	   *own = own_claim();
	int			limit = Max(max_wal_senders - reserved_senders, 0);
	int			others = 0;

	LWLockAcquire(claims_lock(), LW_EXCLUSIVE);
	for (int i = 0; i < MaxBackends; i++)
		if (&claims[i] != own && claims[i].sends)
			others++;
	own->sends = others < limit;
	own->role = GetSessionUserId();
	own->is_over = false;
	sender = own;
	LWLockRelease(claims_lock());
	if (others >= limit)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_CONNECTIONS),
				 errmsg("all %d WAL senders of users are in use", limit),
				 errdetail("%d of max_wal_senders = %d are kept for the platform.",
						   Min(reserved_senders, max_wal_senders), max_wal_senders),
				 errhint("End one, or raise max_wal_senders.")));
}

/* has the user of this WAL sender lost the right to it? A signal handler may ask. */
bool
howdah_sender_is_over(void)
{
	return sender != NULL && sender->is_over;
}

/* a WAL sender that runs ends when the right to it goes, and looks at no catalog meanwhile */
void
howdah_slot_utility(UtilityCall *call)
{
	switch (nodeTag(call->pstmt->utilityStmt))
	{
		case T_GrantRoleStmt:
		case T_AlterRoleStmt:
		case T_DropRoleStmt:
		case T_DropOwnedStmt:
			changes_roles = true;
			break;
		default:
			break;
	}
}

/* XactCallback */
static void
at_transaction_event(XactEvent event, void *arg)
{
	if (changes_roles && event == XACT_EVENT_PRE_COMMIT && claims != NULL)
		end_claims();
	if (event != XACT_EVENT_PRE_COMMIT)
		changes_roles = false;
}

/* mark the WAL senders of those who are no members any more, by what this transaction sees */
static void
end_claims(void)
{
	CommandCounterIncrement();
	for (int i = 0; i < MaxBackends; i++)
	{
		Oid			role = claims[i].sends ? claims[i].role : InvalidOid;

		if (!OidIsValid(role) || howdah_replicates(role))
			continue;
		LWLockAcquire(claims_lock(), LW_EXCLUSIVE);
		if (claims[i].sends && claims[i].role == role)
			claims[i].is_over = true;
		LWLockRelease(claims_lock());
	}
}

/*
 * A slot is about to be created here, by a plugin that was not looked at yet if
 * one is given. The claim counts until the slot does, or until this backend does
 * something else.
 */
void
howdah_claim_slot(const char *name, const char *plugin)
{
	Claim	   *own = own_claim();
	int			limit = Max(max_replication_slots - reserved_slots, 0);
	int			taken;

	howdah_check_replicating();
	if (plugin != NULL)
		check_plugin(plugin);
	if (is_platforms_name(name))
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("replication slot name \"%s\" is reserved", name),
				 errdetail("The platform gives such names to its own slots.")));
	howdah_storage_write();

	LWLockAcquire(claims_lock(), LW_EXCLUSIVE);
	memset(&own->creates, 0, sizeof(NameData));
	taken = slots_of_users();
	if (taken < limit)
		namestrcpy(&own->creates, name);
	LWLockRelease(claims_lock());
	if (taken >= limit)
		ereport(ERROR,
				(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
				 errmsg("all %d replication slots of users are in use", limit),
				 errdetail("%d of max_replication_slots = %d are kept for the platform.",
						   Min(reserved_slots, max_replication_slots),
						   max_replication_slots),
				 errhint("Drop one, or raise max_replication_slots.")));
}

/* what was to be created here is there, or is not */
void
howdah_slot_claimed(void)
{
	if (claims == NULL || MyProcNumber < 0 || MyProcNumber >= MaxBackends ||
		NameStr(claims[MyProcNumber].creates)[0] == '\0')
		return;
	LWLockAcquire(claims_lock(), LW_EXCLUSIVE);
	memset(&claims[MyProcNumber].creates, 0, sizeof(NameData));
	LWLockRelease(claims_lock());
}

/* how many logical slots there are, and are about to be */
static int
slots_of_users(void)
{
	int			count = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];

		if (slot->in_use && SlotIsLogical(slot))
			count++;
	}
	for (int i = 0; i < MaxBackends; i++)
	{
		const char *name = NameStr(claims[i].creates);

		if (name[0] != '\0' && SearchNamedReplicationSlot(name, false) == NULL)
			count++;
	}
	LWLockRelease(ReplicationSlotControlLock);
	return count;
}

/*
 * Refuse a slot that is not this database's and a user's. One that does not
 * exist is left to PostgreSQL.
 */
void
howdah_check_slot(const char *name, bool decodes)
{
	ReplicationSlot *slot;
	Oid			database = InvalidOid;
	NameData	plugin;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	slot = SearchNamedReplicationSlot(name, false);
	if (slot != NULL)
	{
		SpinLockAcquire(&slot->mutex);
		database = slot->data.database;
		plugin = slot->data.plugin;
		SpinLockRelease(&slot->mutex);
	}
	LWLockRelease(ReplicationSlotControlLock);

	if (is_platforms_name(name) || (slot != NULL && !OidIsValid(database)))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for replication slot \"%s\"", name),
				 errdetail("It is no logical slot, or belongs to the platform.")));
	if (slot == NULL)
		return;
	if (database != MyDatabaseId)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for replication slot \"%s\"", name),
				 errdetail("It is a slot of another database.")));
	if (decodes)
		check_plugin(NameStr(plugin));
}

/*
 * Does the platform give such a name to a slot? Its members' begin with the
 * name of the database (internal/model/patroni), or are m1, m2 and so on;
 * others are of read replicas, of what copies the database, and PostgreSQL's
 * own temporary ones.
 */
static bool
is_platforms_name(const char *name)
{
	static const char *const prefixes[] = {
		"follow_", "howdah", "patroni", "pg_basebackup_", "pg_walreceiver_", "rds"
	};
	char		scope[NAMEDATALEN];

	for (int i = 0; i < lengthof(prefixes); i++)
		if (begins_with(name, prefixes[i]))
			return true;
	if (name[0] == 'm' && name[1] != '\0' &&
		strspn(name + 1, "0123456789") == strlen(name + 1))
		return true;
	if (cluster_name == NULL || cluster_name[0] == '\0')
		return false;
	strlcpy(scope, cluster_name, sizeof(scope));
	for (char *c = scope; *c != '\0'; c++)
		*c = *c == '-' || *c == '.' ? '_' : pg_tolower((unsigned char) *c);
	return begins_with(name, scope);
}

static bool
begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void
check_plugin(const char *plugin)
{
	if (!howdah_listed(output_plugins, plugin))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to use the output plugin \"%s\"", plugin),
				 errdetail("These may be used: %s.", output_plugins)));
}

/*
 * Refuse what this server does not have for users. A slot that only a standby has
 * would be lost when its server is rewound or made anew.
 */
void
howdah_check_replicating(void)
{
	if (!logical_slots || wal_level < WAL_LEVEL_LOGICAL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("logical replication is off"),
				 errhint("Set rds.logical_replication to 1 in the parameter group, and reboot.")));
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("logical replication is served by the primary"),
				 errhint("Connect to the writer's endpoint.")));
}

/* run one of PostgreSQL's functions, for whoever may */
static Datum
use_slot(FunctionCallInfo fcinfo, PGFunction run, Use use)
{
	Call		call = {run, fcinfo, (Datum) 0};
	Oid			role;

	if (superuser() || has_rolreplication(GetUserId()))
		return run(fcinfo);
	if (!howdah_replicates(GetUserId()))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to use replication slots"),
				 errdetail("This takes membership in \"%s\".", user_role)));
	if (use != USE_DROP)
		howdah_check_replicating();
	check_use(fcinfo, use);
	role = get_role_oid(platform_role, true);
	if (!OidIsValid(role) || !has_rolreplication(role))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("role \"%s\" does not have the attribute REPLICATION", platform_role)));
	PG_TRY();
	{
		howdah_lend(role, run_call, &call);
	}
	PG_FINALLY();
	{
		howdah_slot_claimed();
	}
	PG_END_TRY();
	return call.result;
}

/* PostgreSQL's functions take the name of the slot first; some take NULL, and refuse it */
static void
check_use(FunctionCallInfo fcinfo, Use use)
{
	const char *name;

	if (PG_NARGS() < 1 || PG_ARGISNULL(0))
		return;
	name = NameStr(*PG_GETARG_NAME(0));
	switch (use)
	{
		case USE_READ:
			howdah_check_slot(name, true);
			break;
		case USE_DROP:
			howdah_check_slot(name, false);
			break;
		case USE_CREATE:
			howdah_claim_slot(name, NameStr(*PG_GETARG_NAME(1)));
			break;
		case USE_COPY:
			howdah_check_slot(name, true);
			/* without a plugin the copy has that of the slot, which was looked at */
			howdah_claim_slot(NameStr(*PG_GETARG_NAME(1)),
							  PG_NARGS() > 3 ? NameStr(*PG_GETARG_NAME(3)) : NULL);
			break;
	}
}

/* run it; who catches an error of it would keep the slot, and PostgreSQL drop it later */
static void
run_call(void *arg)
{
	Call	   *call = arg;

	PG_TRY();
	{
		call->result = call->run(call->fcinfo);
	}
	PG_CATCH();
	{
		if (MyReplicationSlot != NULL)
			ReplicationSlotRelease();
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/* what stands in for a function of PostgreSQL's */
#define SLOT_FUNCTION(name, use) \
	PG_FUNCTION_INFO_V1(howdah_##name); \
	Datum \
	howdah_##name(PG_FUNCTION_ARGS) \
	{ \
		return use_slot(fcinfo, name, use); \
	}

SLOT_FUNCTION(pg_create_logical_replication_slot, USE_CREATE)
SLOT_FUNCTION(pg_copy_logical_replication_slot_a, USE_COPY)
SLOT_FUNCTION(pg_copy_logical_replication_slot_b, USE_COPY)
SLOT_FUNCTION(pg_copy_logical_replication_slot_c, USE_COPY)
SLOT_FUNCTION(pg_drop_replication_slot, USE_DROP)
SLOT_FUNCTION(pg_replication_slot_advance, USE_READ)
SLOT_FUNCTION(pg_logical_slot_get_changes, USE_READ)
SLOT_FUNCTION(pg_logical_slot_get_binary_changes, USE_READ)
SLOT_FUNCTION(pg_logical_slot_peek_changes, USE_READ)
SLOT_FUNCTION(pg_logical_slot_peek_binary_changes, USE_READ)
