/*-------------------------------------------------------------------------
 *
 * client.c
 *		The worker's connection to the upstream.
 *
 * Every wait has an end, and gives way to a promotion: an upstream that went
 * away without a word must not keep the worker. Whatever comes back is bytes
 * of somebody else's until wire.c and filter.c have read them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "catalog/pg_type_d.h"
#include "libpq-fe.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "ccm.h"

#define CONNECT_MS		10000
#define ANSWER_MS		60000
#define MAX_OPTIONS		64

static PGconn *conn = NULL;
static char *connected_to = NULL;	/* the settings that conn was made of */

bool
ccm_connected(void)
{
	return conn != NULL;
}

void
ccm_disconnect(void)
{
	if (conn == NULL)
		return;
	PQfinish(conn);
	ReleaseExternalFD();
	conn = NULL;
}

static const char *
conninfo(void)
{
	return ccm_upstream_conninfo[0] != '\0' ? ccm_upstream_conninfo : PrimaryConnInfo;
}

/*
 * Wait for the socket or the latch, not past the deadline. The worker may be
 * told meanwhile that this is not its business any more.
 */
static void
wait_for_socket(int events, TimestampTz deadline)
{
	long		ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
	int			rc;

	if (ms <= 0)
		ccm_fail(CCM_CAUSE_CONNECTION, "the upstream does not answer");
	rc = WaitLatchOrSocket(MyLatch, events | WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						   PQsocket(conn), Min(ms, 200), PG_WAIT_EXTENSION);
	if (rc & WL_LATCH_SET)
		ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	if (!RecoveryInProgress())
		ccm_fail(CCM_CAUSE_OTHER, "this server was promoted");
}

/*
 * libpq's messages have more lines than one, the first of which says it. The
 * words may be the upstream's: nobody knows in which encoding they are, and
 * what else is in them.
 */
static const char *
first_line(const char *message)
{
	char	   *line = pstrdup(message ? message : "");
	char	   *end = strchr(line, '\n');

	if (end)
		*end = '\0';
	return ccm_clean_ascii(line);
}

/* A session that stays must not be ended between two scans. */
static const char *
with_no_timeout(const char *options)
{
	return ccm_interval >= CCM_STAY_MS ? options :
		psprintf("%s -c " CCM_STAY_OPTION, options);
}

static void
add_option(const char **keywords, const char **values, int *count,
		   const char *keyword, const char *value)
{
	if (*count < MAX_OPTIONS - 1)
	{
		keywords[*count] = keyword;
		values[*count] = value;
		(*count)++;
	}
}

/*
 * What the conninfo leaves open. A connection that a firewall forgot, or whose
 * other end lost its power, is noticed within half a minute.
 */
static void
add_defaults(const char **keywords, const char **values, int *count)
{
	static const char *const defaults[][2] = {
		{"application_name", "ccm"},
		{"client_encoding", "SQL_ASCII"},
		{"keepalives_idle", "10"},
		{"keepalives_interval", "5"},
		{"keepalives_count", "3"},
		{"tcp_user_timeout", "30000"},
	};
	int			given = *count;

	for (int d = 0; d < lengthof(defaults); d++)
	{
		bool		is_given = false;

		for (int i = 0; i < given; i++)
			is_given |= strcmp(keywords[i], defaults[d][0]) == 0;
		if (!is_given)
			add_option(keywords, values, count, defaults[d][0], defaults[d][1]);
	}
}

/*
 * Begin to connect; the file descriptor is accounted for. primary_conninfo is for replication: the name of the
 * standby and a database that may be in it are not ours.
 */
static PGconn *
start_connection(void)
{
	bool		is_ours = ccm_upstream_conninfo[0] != '\0';
	bool		has_database = false;
	const char *session = "";
	const char *keywords[MAX_OPTIONS];
	const char *values[MAX_OPTIONS];
	int			count = 0;
	char	   *error = NULL;
	PQconninfoOption *options = PQconninfoParse(conninfo(), &error);
	PGconn	   *result;

	if (options == NULL)
	{
		const char *line = first_line(error);

		PQfreemem(error);
		ccm_fail(CCM_CAUSE_CONNECTION, "invalid connection string: %s", line);
	}
	for (PQconninfoOption *o = options; o->keyword != NULL; o++)
	{
		bool		skip = !is_ours && (strcmp(o->keyword, "application_name") == 0 ||
										strcmp(o->keyword, "dbname") == 0);

		if (o->val == NULL || skip || strcmp(o->keyword, "replication") == 0)
			continue;
		if (strcmp(o->keyword, "options") == 0)
		{
			session = o->val;
			continue;
		}
		has_database |= strcmp(o->keyword, "dbname") == 0;
		add_option(keywords, values, &count, o->keyword, o->val);
	}
	if (!has_database)
		add_option(keywords, values, &count, "dbname", ccm_database);
	add_option(keywords, values, &count, "options", with_no_timeout(session));
	add_defaults(keywords, values, &count);
	keywords[count] = values[count] = NULL;
	result = AcquireExternalFD() ? PQconnectStartParams(keywords, values, 0) : NULL;
	PQconninfoFree(options);
	return result;
}

static void
finish_connection(void)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), CONNECT_MS);
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	while (PQstatus(conn) != CONNECTION_BAD &&
		   status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED)
	{
		wait_for_socket(status == PGRES_POLLING_READING ? WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE,
						deadline);
		status = PQconnectPoll(conn);
	}
	if (PQstatus(conn) != CONNECTION_OK)
		ccm_fail(CCM_CAUSE_CONNECTION, "%s", first_line(PQerrorMessage(conn)));
}

static void
remember_upstream(void)
{
	char		text[CCM_TEXT];

	snprintf(text, sizeof(text), "%s:%s", PQhost(conn) ? PQhost(conn) : "",
			 PQport(conn) ? PQport(conn) : "");
	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	strlcpy(ccm_shared->reader.upstream, text, CCM_TEXT);
	LWLockRelease(ccm_shared->lock);
}

/* What the upstream says besides is not for our log, which libpq would write to. */
static void
ignore_notice(void *arg, const char *message)
{
}

/* Send what libpq still holds: a filter is larger than a socket's buffer. */
static void
flush_request(TimestampTz deadline)
{
	int			left;

	while ((left = PQflush(conn)) > 0)
	{
		wait_for_socket(WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE, deadline);
		if (!PQconsumeInput(conn))
			break;
	}
	if (left < 0)
		ccm_fail(CCM_CAUSE_CONNECTION, "%s", first_line(PQerrorMessage(conn)));
}

/* Does the upstream want to copy? We did not ask for that, and no end of it comes by itself. */
static bool
is_copy(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

/*
 * The last of the results that a statement has; the caller clears it. Somebody
 * who sends one after the other is not waited for: it takes its end, too.
 */
static PGresult *
get_result(TimestampTz deadline)
{
	PGresult   *volatile last = NULL;

	PG_TRY();
	{
		for (;;)
		{
			PGresult   *result;

			CHECK_FOR_INTERRUPTS();
			if (GetCurrentTimestamp() >= deadline)
				ccm_fail(CCM_CAUSE_CONNECTION, "the upstream does not answer");
			while (PQisBusy(conn))
			{
				wait_for_socket(WL_SOCKET_READABLE, deadline);
				if (!PQconsumeInput(conn))
					break;
			}
			result = PQgetResult(conn);
			if (result == NULL)
				break;
			PQclear(last);
			last = result;
			if (PQstatus(conn) == CONNECTION_BAD || is_copy(result))
				break;
		}
	}
	PG_CATCH();
	{
		PQclear(last);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return last;
}

/* The upstream says no: find out what that means. */
static void
fail_with_result(PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	CcmCause	cause = CCM_CAUSE_CONNECTION;
	const char *text = first_line(message ? message : PQerrorMessage(conn));

	if (state != NULL && strlen(state) == 5)
		cause = ccm_cause_of_error(MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]));
	PQclear(result);
	ccm_fail(cause, "%s", text);
}

/* It must be rows; what is not is cleared. */
static void
check_result(PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	if (status == PGRES_TUPLES_OK)
		return;
	if (result == NULL || status == PGRES_FATAL_ERROR)
		fail_with_result(result);
	PQclear(result);
	ccm_fail(CCM_CAUSE_MALFORMED, "the upstream's answer is malformed");
}

static int64
get_binary(PGresult *result, int column, int bytes)
{
	const char *value = PQgetvalue(result, 0, column);
	uint32		u32;
	uint64		u64;

	if (PQgetisnull(result, 0, column) || PQgetlength(result, 0, column) != bytes)
		ccm_fail(CCM_CAUSE_MALFORMED, "the upstream's answer is malformed");
	if (bytes == 4)
	{
		memcpy(&u32, value, 4);
		return (int32) pg_ntoh32(u32);
	}
	memcpy(&u64, value, 8);
	return (int64) pg_ntoh64(u64);
}

static void
read_pulled(PGresult *result, CcmPulled *pulled)
{
	pulled->result = result;
	if (PQntuples(result) != 1 || PQnfields(result) != 4 || PQgetisnull(result, 0, 0) ||
		PQfformat(result, 0) != 1 || PQfformat(result, 3) != 1)
		ccm_fail(CCM_CAUSE_MALFORMED, "the upstream's answer is malformed");
	pulled->blocks = (const unsigned char *) PQgetvalue(result, 0, 0);
	pulled->blocks_length = PQgetlength(result, 0, 0);
	pulled->next = (int) get_binary(result, 1, 4);
	pulled->found = get_binary(result, 2, 8);
	pulled->mirror = NULL;
	if (!PQgetisnull(result, 0, 3))
	{
		pulled->mirror = (const unsigned char *) PQgetvalue(result, 0, 3);
		pulled->mirror_length = PQgetlength(result, 0, 3);
	}
}

/* Ask something; the result is rows, and the caller's to clear. */
static PGresult *
ask(const char *query, int count, const Oid *types, const char *const *values,
	const int *lengths, const int *formats)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ANSWER_MS);
	PGresult   *result;

	if (!PQsendQueryParams(conn, query, count, types, values, lengths, formats, 1))
		ccm_fail(CCM_CAUSE_CONNECTION, "%s", first_line(PQerrorMessage(conn)));
	flush_request(deadline);
	result = get_result(deadline);
	check_result(result);
	return result;
}

/*
 * Is there what we are going to call, and may we? To call it in vain would be
 * an error in the upstream's log each time that it is tried.
 */
static void
look_for_function(void)
{
	PGresult   *result = ask("SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE'::pg_catalog.text)"
							 " AND pg_catalog.has_function_privilege(p.oid, 'EXECUTE'::pg_catalog.text)"
							 " FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_proc p ON p.pronamespace = n.oid"
							 " WHERE n.nspname = 'ccm' AND p.proname = 'pull'"
							 " AND p.proargtypes = '17 23 23 23 23 23'::pg_catalog.oidvector",
							 0, NULL, NULL, NULL, NULL);
	bool		is_there = PQntuples(result) == 1;
	bool		is_allowed = is_there && PQnfields(result) == 1 && PQgetlength(result, 0, 0) == 1 &&
		PQgetvalue(result, 0, 0)[0] == 1;

	PQclear(result);
	if (!is_there)
		ccm_fail(CCM_CAUSE_NO_EXTENSION, "there is no function ccm.pull in the upstream's database");
	if (!is_allowed)
		ccm_fail(CCM_CAUSE_RIGHTS, "permission denied for function ccm.pull");
}

/* Connect, unless that is done and the settings are the same. */
void
ccm_connect(void)
{
	char	   *wanted = psprintf("%s\n%s", conninfo(), ccm_database);

	if (conn != NULL && strcmp(connected_to, wanted) == 0 && PQstatus(conn) == CONNECTION_OK)
		return;
	ccm_disconnect();
	if (conninfo()[0] == '\0')
		ccm_fail(CCM_CAUSE_CONNECTION, "neither ccm.upstream_conninfo nor primary_conninfo is set");
	ccm_set_state(CCM_STATE_CONNECTING, CCM_CAUSE_NONE);
	if (connected_to)
		free(connected_to);
	connected_to = strdup(wanted);
	conn = connected_to ? start_connection() : NULL;
	if (conn == NULL)
		ccm_fail(CCM_CAUSE_CONNECTION, "out of memory or of file descriptors");
	PQsetNoticeProcessor(conn, ignore_notice, NULL);
	finish_connection();
	PQsetnonblocking(conn, 1);
	look_for_function();
	remember_upstream();
}

/* Ask. The answer's bytes are valid until ccm_pulled_free(). */
void
ccm_pull_from_upstream(const unsigned char *filter, size_t length,
					   const CcmFilter *header, int max, int start, CcmPulled *pulled)
{
	const char *query = "SELECT blocks, next_buf, found, peer_filter FROM ccm.pull($1, $2, $3, $4, $5, $6)";
	const Oid	types[6] = {BYTEAOID, INT4OID, INT4OID, INT4OID, INT4OID, INT4OID};
	int			numbers[6] = {0, header->slice, header->nslices, ccm_min_usage, max, start};
	const char *values[6] = {(const char *) filter};
	int			lengths[6] = {(int) length, 4, 4, 4, 4, 4};
	int			formats[6] = {1, 1, 1, 1, 1, 1};

	for (int i = 1; i < 6; i++)
	{
		numbers[i] = pg_hton32(numbers[i]);
		values[i] = (const char *) &numbers[i];
	}
	read_pulled(ask(query, 6, types, values, lengths, formats), pulled);
}

void
ccm_pulled_free(CcmPulled *pulled)
{
	PQclear(pulled->result);
	pulled->result = NULL;
}
