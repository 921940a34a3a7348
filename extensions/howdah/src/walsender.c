/*-------------------------------------------------------------------------
 *
 * walsender.c
 *		WAL senders of users: logical replication, and nothing else.
 *
 * A subscriber, Debezium or pg_recvlogical speaks to a WAL sender that is
 * connected to a database. PostgreSQL gives one to the attribute REPLICATION,
 * which no user has (slot.c), and then lets it run every command: copies of all
 * files too. So:
 *
 * - At the login of a user, am_walsender is off while PostgreSQL asks for the
 *   attribute, and on again at the end of the login, if the user may. Nothing
 *   of that is stored anywhere: a server without this module, or with an older
 *   one, refuses the login.
 * - No hook is called for replication commands. But each is logged after it is
 *   parsed and before it runs, and there is one for the log. In the WAL sender
 *   of a user the log of commands is forced on; the hook parses the command by
 *   PostgreSQL's own parser, and raises an error for what is not allowed. The
 *   error replaces the message of the log, and the command does not run.
 * - Whether the hook is called is not taken for granted. Each login proves it
 *   by a command that does nothing, with the settings and the server that are
 *   there, and ends if the hook did not see it. The settings cannot be changed
 *   after that, by nobody and in no way.
 *
 * A WAL sender of a user confirms no commits, does not call itself by the name
 * of a member, and does not hold up a shutdown: PostgreSQL itself would wait
 * until the last subscriber says that it has everything.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/xact.h"
#include "libpq/auth.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "nodes/replnodes.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "tcop/tcopprot.h"
#include "utils/guc_tables.h"
#include "utils/memutils.h"
#include "utils/pidfile.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "slot.h"

/* a command that finds no slot, and so does nothing should it run */
static const char probe[] = "START_REPLICATION SLOT \"howdah probe\" LOGICAL 0/0";

/* how often a WAL sender looks whether the server stops, and how long it goes on then */
#define LOOK_MS 200
#define LOOKS_WHILE_STOPPING 5

static ClientAuthentication_hook_type next_client_authentication;
static emit_log_hook_type next_emit_log;
static GucStringCheckHook next_check_application_name;

/* PostgreSQL has not decided yet about this login */
static bool is_candidate = false;

/* this is a WAL sender of a user */
static bool is_users = false;

static bool is_proving = false;
static bool is_proven = false;

/* log_replication_commands as it was */
static bool logs_commands = false;

static TimeoutId look_timeout = MAX_TIMEOUTS;
static volatile sig_atomic_t looks_while_stopping = 0;

static void client_authentication(Port *port, int status);
static bool is_user(const char *name);
static void confine_session(void);
static void force(const char *setting, const char *value);
static struct config_generic *find_setting(const char *name);
static bool keep_bool(bool *value, void **extra, GucSource source);
static bool keep_enum(int *value, void **extra, GucSource source);
static bool is_refused(GucSource source);
static bool check_application_name(char **value, void **extra, GucSource source);
static bool lets_log_through(int level);
static void at_transaction_event(XactEvent event, void *arg);
static void become_sender(void);
static void prove_sight(void);
static void emit_log(ErrorData *edata);
static bool has_sent(void);
static void end_session(ErrorData *edata);
static bool is_command(ErrorData *edata);
static void check_command(const char *command);
static void check_member(void);
static void check_create(CreateReplicationSlotCmd *command);
static void check_start(StartReplicationCmd *command);
static void refuse(const char *what);
static void watch_for_end(void);
static void look_for_end(void);
static bool server_stops(void);

void
howdah_walsender_init(void)
{
	next_client_authentication = ClientAuthentication_hook;
	ClientAuthentication_hook = client_authentication;
	next_emit_log = emit_log_hook;
	emit_log_hook = emit_log;
	RegisterXactCallback(at_transaction_event, NULL);
}

/* ClientAuthentication_hook: before PostgreSQL asks for the attribute */
static void
client_authentication(Port *port, int status)
{
	if (next_client_authentication)
		next_client_authentication(port, status);
	if (status != STATUS_OK || !am_walsender || !am_db_walsender ||
		!is_user(port->user_name))
		return;
	am_walsender = false;
	is_candidate = true;
	confine_session();
}

/* is this neither a superuser, nor of the platform, nor one with the attribute? */
static bool
is_user(const char *name)
{
	Oid			role = get_role_oid(name, true);

	return OidIsValid(role) && !superuser_arg(role) &&
		!has_rolreplication(role) && !howdah_is_protected_name(name);
}

/* settings that hold until the session ends, before those of the user are read */
static void
confine_session(void)
{
	struct config_generic *setting;

	logs_commands = log_replication_commands;
	force("log_replication_commands", "on");
	force("log_min_messages", lets_log_through(log_min_messages) ?
		  GetConfigOption("log_min_messages", false, false) : "error");
	force("synchronous_standby_names", "");

	setting = find_setting("log_replication_commands");
	((struct config_bool *) setting)->check_hook = keep_bool;
	setting = find_setting("log_min_messages");
	((struct config_enum *) setting)->check_hook = keep_enum;
	setting = find_setting("application_name");
	next_check_application_name = ((struct config_string *) setting)->check_hook;
	((struct config_string *) setting)->check_hook = check_application_name;

	/* that of the platform's is short, so that a lost standby holds up nobody */
	SetConfigOption("wal_sender_timeout", "60s", PGC_USERSET, PGC_S_GLOBAL);
}

/* a reload of the configuration does not change what is overridden */
static void
force(const char *setting, const char *value)
{
	SetConfigOption(setting, value, PGC_SIGHUP, PGC_S_OVERRIDE);
}

static struct config_generic *
find_setting(const char *name)
{
	int			count;
	struct config_generic **settings = howdah_settings(&count);

	for (int i = 0; i < count; i++)
		if (strcmp(settings[i]->name, name) == 0)
			return settings[i];
	elog(FATAL, "there is no setting \"%s\"", name);
}

/* check hooks: what has less say than the forced value changes nothing, and may come */
static bool
keep_bool(bool *value, void **extra, GucSource source)
{
	return *value || !is_refused(source);
}

static bool
keep_enum(int *value, void **extra, GucSource source)
{
	return lets_log_through(*value) || !is_refused(source);
}

static bool
is_refused(GucSource source)
{
	if (source < PGC_S_OVERRIDE)
		return false;
	GUC_check_errdetail("It is fixed in a user's WAL sender.");
	return true;
}

/*
 * check hook: Patroni and the drivers know members by this name. Both do not
 * tell small letters from others.
 */
static bool
check_application_name(char **value, void **extra, GucSource source)
{
	size_t		length = cluster_name != NULL ? strlen(cluster_name) : 0;
	char	   *lower;
	bool		reserved;

	if (next_check_application_name &&
		!next_check_application_name(value, extra, source))
		return false;
	if (length == 0)
		return true;
	lower = pstrdup(*value);
	for (char *c = lower; *c != '\0'; c++)
		*c = pg_tolower((unsigned char) *c);
	reserved = howdah_is_members_name(lower) ||
		(pg_strncasecmp(lower, cluster_name, length) == 0 &&
		 (lower[length] == '.' || lower[length] == '\0'));
	pfree(lower);
	if (reserved)
		GUC_check_errdetail("It is the name of a member of the database.");
	return !reserved;
}

/* do messages of the levels LOG and ERROR reach the hook? As elog.c has it. */
static bool
lets_log_through(int level)
{
	return level != LOG && level <= ERROR;
}

/* XactCallback: the first transaction is the login */
static void
at_transaction_event(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_PRE_COMMIT)
		return;
	if (is_candidate)
		become_sender();
	else if (is_users &&
			 (!log_replication_commands || !lets_log_through(log_min_messages)))
		ereport(FATAL,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("the log of replication commands was turned off")));
}

/* the end of a login; every error here ends it */
static void
become_sender(void)
{
	is_candidate = false;
	if (!howdah_replicates(GetSessionUserId()))
		ereport(FATAL,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to start WAL sender"),
				 errdetail("This takes membership in \"%s\".", "rds_replication")));
	howdah_check_replicating();
	howdah_claim_sender();
	is_users = true;
	prove_sight();
	am_walsender = true;
}

/*
 * Have PostgreSQL run a replication command, to see that the hook sees it
 * before it does anything. The WAL sender has no place in shared memory yet.
 */
static void
prove_sight(void)
{
	MemoryContext context = CurrentMemoryContext;
	WalSnd		nobody;

	memset(&nobody, 0, sizeof(nobody));
	SpinLockInit(&nobody.mutex);
	MyWalSnd = &nobody;
	is_proving = true;
	PG_TRY();
	{
		(void) exec_replication_command(probe);
	}
	PG_CATCH();
	{
		FlushErrorState();
	}
	PG_END_TRY();
	is_proving = false;
	MyWalSnd = NULL;
	debug_query_string = NULL;
	MemoryContextSwitchTo(context);
	if (!is_proven)
		ereport(FATAL,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("this server does not show its replication commands"),
				 errdetail("So nobody could keep users from copying its files.")));
}

/* emit_log_hook */
static void
emit_log(ErrorData *edata)
{
	if (is_users && edata->elevel == ERROR && has_sent())
		end_session(edata);
	if (is_users && is_command(edata))
	{
		if (is_proving)
		{
			is_proven = debug_query_string != NULL &&
				strcmp(debug_query_string, probe) == 0;
			ereport(ERROR, (errmsg_internal("seen")));
		}
		check_command(debug_query_string);
		edata->output_to_server = logs_commands;
	}
	if (next_emit_log)
		next_emit_log(edata);
}

/* has START_REPLICATION begun to send, now or before? */
static bool
has_sent(void)
{
	return MyWalSnd != NULL &&
		(MyWalSnd->state != WALSNDSTATE_STARTUP || MyWalSnd->sentPtr != InvalidXLogRecPtr);
}

/*
 * After START_REPLICATION walsender.c of PostgreSQL keeps a pointer to a reader of
 * WAL that is freed, and at each later error it closes the file of that reader: any
 * file of the process, so that the server panics. This comes before.
 */
static void
end_session(ErrorData *edata)
{
	int			code = edata->sqlerrcode;
	char	   *message = MemoryContextStrdup(TopMemoryContext,
											  edata->message ? edata->message : "");

	ereport(FATAL,
			(errcode(code), errmsg_internal("%s", message),
			 errdetail("A WAL sender that has sent changes ends at an error.")));
}

/* is this the message about a command that is going to run? */
static bool
is_command(ErrorData *edata)
{
	return edata->elevel < ERROR && edata->funcname != NULL &&
		strcmp(edata->funcname, "exec_replication_command") == 0;
}

/* refuse what is not known to be harmless */
static void
check_command(const char *command)
{
	MemoryContext scratch;
	MemoryContext save;
	Node	   *parsed;

	if (command == NULL)
		refuse("replication commands that are not shown");

	/* an error leaves it to the end of the message */
	scratch = AllocSetContextCreate(MessageContext, "howdah command",
									ALLOCSET_SMALL_SIZES);
	save = MemoryContextSwitchTo(scratch);
	check_member();
	MemoryContextSwitchTo(scratch);
	parsed = howdah_parse_replication(command);
	howdah_slot_claimed();
	switch (parsed != NULL ? nodeTag(parsed) : T_Invalid)
	{
		case T_IdentifySystemCmd:
		case T_ReadReplicationSlotCmd:
		case T_VariableShowStmt:
			break;
		case T_CreateReplicationSlotCmd:
			check_create((CreateReplicationSlotCmd *) parsed);
			break;
		case T_DropReplicationSlotCmd:
			howdah_check_slot(((DropReplicationSlotCmd *) parsed)->slotname, false);
			break;
		case T_StartReplicationCmd:
			check_start((StartReplicationCmd *) parsed);
			break;
		default:
			if (parsed == NULL || howdah_altered_slot(parsed) == NULL)
				refuse("this replication command");
			howdah_check_slot(howdah_altered_slot(parsed), false);
	}
	MemoryContextSwitchTo(save);
	MemoryContextDelete(scratch);
}

/* the role may have been taken away since the login; in an aborted transaction nothing runs anyway */
static void
check_member(void)
{
	bool		begins = !IsTransactionOrTransactionBlock();
	bool		may;

	if (IsAbortedTransactionBlockState())
		return;
	if (begins)
		StartTransactionCommand();
	may = !howdah_sender_is_over() && howdah_replicates(GetSessionUserId());
	if (begins)
		CommitTransactionCommand();
	else
		InvalidateCatalogSnapshot();	/* a slot's snapshot must be the first */
	if (!may)
		ereport(FATAL,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to use replication commands"),
				 errdetail("Membership in \"%s\" was revoked.", "rds_replication")));
}

static void
check_create(CreateReplicationSlotCmd *command)
{
	if (command->kind != REPLICATION_KIND_LOGICAL)
		refuse("physical replication slots");
	howdah_claim_slot(command->slotname, command->plugin);
}

static void
check_start(StartReplicationCmd *command)
{
	if (command->kind != REPLICATION_KIND_LOGICAL || command->slotname == NULL)
		refuse("physical replication");
	howdah_check_slot(command->slotname, true);
	watch_for_end();
}

static void
refuse(const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to use %s", what),
			 errdetail("Users have logical replication alone.")));
}

/*
 * A server that stops waits for logical WAL senders before its last checkpoint,
 * until the other side confirms all of the WAL. Some confirm late, and some
 * never: they must not hold up a failover. Nor do they go on when the role was
 * taken away.
 */
static void
watch_for_end(void)
{
	if (look_timeout == MAX_TIMEOUTS)
		look_timeout = RegisterTimeout(USER_TIMEOUT, look_for_end);
	enable_timeout_every(look_timeout,
						 TimestampTzPlusMilliseconds(GetCurrentTimestamp(), LOOK_MS),
						 LOOK_MS);
}

/* timeout handler, which runs in a signal handler: ends this process as pg_terminate_backend does */
static void
look_for_end(void)
{
	if (!howdah_sender_is_over() &&
		(!server_stops() || ++looks_while_stopping < LOOKS_WHILE_STOPPING))
		return;
	InterruptPending = true;
	ProcDiePending = true;
}

/* the postmaster says so in a line of its file as soon as it is asked to */
static bool
server_stops(void)
{
	char		text[1024];
	char	   *line = text;
	ssize_t		length;
	int			file = open("postmaster.pid", O_RDONLY);

	if (file < 0)
		return false;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length < 0)
		return false;
	text[length] = '\0';
	for (int i = 1; i < LOCK_FILE_LINE_PM_STATUS; i++)
	{
		line = strchr(line, '\n');
		if (line == NULL)
			return false;
		line++;
	}
	return strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
}
