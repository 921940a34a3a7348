/*-------------------------------------------------------------------------
 *
 * serve.c
 *		The side that is asked: ccm.pull(), and what else reads a filter.
 *
 * The answers name relations by the numbers of their files, and blocks. That
 * is nobody's data, but it is nothing for a tenant either: how big others'
 * tables are, which of their pages are used. So it takes two things to ask. EXECUTE is
 * granted to the role ccm_reader, and the login must have REPLICATION, as that
 * of a standby has. The second is for PostgreSQL 15, where whoever has
 * CREATEROLE makes himself a member of any role: REPLICATION he cannot give.
 *
 * The login must ask itself. What autovacuum or a function with its owner's
 * rights calls may be a tenant's code in the session of somebody mightier: the
 * session user of an autovacuum worker is a superuser.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "funcapi.h"
#include "libpq/libpq-be.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "ccm.h"
#include "serve.h"

/* The most pages that one answer has */
#define MAX_PAGES			(1024 * 1024)

/* The text domain of an error that is not for the log; it has no translations. */
#define HUSHED				"ccm-hushed"

/* A refusal is logged again after so long, if it is the same. */
#define REFUSAL_AGAIN_MS	3600000

PG_FUNCTION_INFO_V1(ccm_filter);
PG_FUNCTION_INFO_V1(ccm_pull);
PG_FUNCTION_INFO_V1(ccm_contains);

/* What is asked for */
typedef struct Request
{
	CcmFilter	filter;
	int			min_usage;
	int			max;
	int			start;
} Request;

/* What was found for it */
typedef struct Answer
{
	CcmTag	   *tags;
	uint32		count;
	int64		found;
	int			next;			/* the buffer to go on from; -1 at the end */
} Answer;

static emit_log_hook_type prev_emit_log = NULL;
static int	session_scans = 0;	/* that ended in this session */
static bool connecting = false; /* to a database that may be none */

/*
 * A reader that is refused comes again and again. Its operator sees the reason
 * in ccm.reader_status(); ours needs one line. The hook sees every error of
 * this backend, and touches those that are marked as not for the log, and what
 * is usual where a database is just made or dropped.
 */
static void
filter_log(ErrorData *edata)
{
	bool		is_usual = edata->sqlerrcode == ERRCODE_UNDEFINED_DATABASE ||
		edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE;

	if (edata->elevel >= ERROR &&
		((connecting && is_usual) || (edata->domain != NULL && strcmp(edata->domain, HUSHED) == 0)))
		edata->output_to_server = false;
	if (prev_emit_log)
		prev_emit_log(edata);
}

void
ccm_install_log_filter(void)
{
	prev_emit_log = emit_log_hook;
	emit_log_hook = filter_log;
}

/* A reading worker is about to connect, or it has. */
void
ccm_hush_connecting(bool is)
{
	connecting = is;
}

/* Should a refusal be logged? Each cause is, once in a while. */
static bool
is_news(CcmCause cause)
{
	TimestampTz *refused_at = &ccm_shared->server.refused_at[cause];
	TimestampTz now = GetCurrentTimestamp();
	bool		result;

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	result = TimestampDifferenceExceeds(*refused_at, now, REFUSAL_AGAIN_MS);
	if (result)
		*refused_at = now;
	LWLockRelease(ccm_shared->lock);
	return result;
}

static void
refuse_with(CcmCause cause, int code, const char *message, const char *detail)
{
	ereport_domain(ERROR, is_news(cause) ? TEXTDOMAIN : HUSHED,
				   (errcode(code),
					errmsg_internal("%s", message),
					detail ? errdetail_internal("%s", detail) : 0));
}

static void
refuse(CcmCause cause, const char *message)
{
	refuse_with(cause, ccm_code_of_cause(cause), message, NULL);
}

void
ccm_require_library(void)
{
	if (ccm_shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ccm must be loaded by shared_preload_libraries")));
}

/* See the head of this file. */
static bool
is_reader(void)
{
	Oid			login = GetSessionUserId();

	if (MyProcPort == NULL || GetUserId() != login || InSecurityRestrictedOperation())
		return false;
	return superuser_arg(login) || has_rolreplication(login);
}

static void
require_reader(void)
{
	ccm_require_library();
	if (!is_reader())
		refuse_with(CCM_CAUSE_RIGHTS, ERRCODE_INSUFFICIENT_PRIVILEGE,
					"permission denied to read which pages are cached",
					"A login that has the REPLICATION attribute must ask itself.");
}

static void
check_argument(const char *name, int value, int min, int max)
{
	if (value < min || value > max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s must be between %d and %d", name, min, max)));
}

static uint64
new_seed(void)
{
	uint64		seed;

	if (!pg_strong_random(&seed, sizeof(seed)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not get a random number")));
	return seed;
}

static void
read_filter(CcmFilter *filter, bytea *message)
{
	CcmPeer		self;

	ccm_self(&self);
	switch (ccm_filter_read(filter, (unsigned char *) VARDATA_ANY(message),
							VARSIZE_ANY_EXHDR(message), &self))
	{
		case CCM_OK:
			return;
		case CCM_OTHER_VERSION:
			refuse(CCM_CAUSE_VERSION, "the reader has another version of ccm");
			break;
		case CCM_OTHER_SYSTEM:
			refuse(CCM_CAUSE_SYSTEM, "the reader is of another cluster: system identifiers differ");
			break;
		case CCM_OTHER_BLOCK_SIZE:
			refuse(CCM_CAUSE_BLOCK_SIZE, "the reader has another block size");
			break;
		case CCM_MALFORMED:
			refuse(CCM_CAUSE_MALFORMED, "malformed filter");
			break;
	}
}

static bytea *
filter_of_buffers(CcmFilter *filter, int min_usage)
{
	bytea	   *result;

	filter->seed = new_seed();
	filter->flags = 0;
	result = (bytea *) ccm_build_filter(filter, min_usage, VARHDRSZ);
	SET_VARSIZE(result, VARHDRSZ + ccm_filter_bytes(filter));
	return result;
}

/* filter(slice int, nslices int, min_usage int) returns bytea */
Datum
ccm_filter(PG_FUNCTION_ARGS)
{
	CcmFilter	filter = {0};
	int			min_usage = PG_GETARG_INT32(2);

	require_reader();
	check_argument("nslices", PG_GETARG_INT32(1), 1, CCM_MAX_SLICES);
	check_argument("slice", PG_GETARG_INT32(0), 0, PG_GETARG_INT32(1) - 1);
	check_argument("min_usage", min_usage, 0, CCM_MAX_USAGE);
	filter.slice = PG_GETARG_INT32(0);
	filter.nslices = PG_GETARG_INT32(1);
	PG_RETURN_BYTEA_P(filter_of_buffers(&filter, min_usage));
}

/* contains(filter bytea, db oid, spc oid, rel oid, fork int, block bigint) returns bool */
Datum
ccm_contains(PG_FUNCTION_ARGS)
{
	CcmFilter	filter;
	CcmTag		tag = {0};

	require_reader();
	read_filter(&filter, PG_GETARG_BYTEA_PP(0));
	check_argument("fork", PG_GETARG_INT32(4), 0, CCM_MAX_FORK);
	tag.db = PG_GETARG_OID(1);
	tag.spc = PG_GETARG_OID(2);
	tag.rel = PG_GETARG_OID(3);
	tag.fork = PG_GETARG_INT32(4);
	tag.block = (uint32) PG_GETARG_INT64(5);
	PG_RETURN_BOOL(ccm_tag_slice(&tag, filter.nslices) == filter.slice &&
				   ccm_filter_has(&filter, ccm_tag_hash(&tag, filter.seed)));
}

/* Is this a session for more scans than one? It says so, or has had them. */
static bool
session_stays(void)
{
	const char *options = MyProcPort ? MyProcPort->cmdline_options : NULL;

	return session_scans > 1 || (options != NULL && strstr(options, CCM_STAY_OPTION) != NULL);
}

/*
 * Our reader's session is over. If it was to stay the reader is gone, and another
 * may come at once. If it was for one scan the same reader will be back for the
 * next.
 */
static void
release_reader(int code, Datum arg)
{
	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	if (ccm_shared->server.reader_pid == MyProcPid)
	{
		ccm_shared->server.reader_pid = 0;
		if (session_stays())
			ccm_shared->server.reader = 0;
	}
	LWLockRelease(ccm_shared->lock);
}

static void
remember_address(CcmServer *server)
{
	const char *host = MyProcPort ? MyProcPort->remote_host : NULL;

	strlcpy(server->reader_address, host ? host : "", CCM_TEXT);
}

/* One reader is served: two would each be told half of what is hot. */
static void
claim_reader(uint64 reader)
{
	static bool registered = false;
	CcmServer  *server = &ccm_shared->server;
	TimestampTz now = GetCurrentTimestamp();
	bool		taken;

	if (!registered)
		before_shmem_exit(release_reader, 0);
	registered = true;

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	taken = server->reader != 0 && server->reader != reader &&
		!TimestampDifferenceExceeds(server->last_pull, now, CCM_READER_HELD_MS);
	if (!taken)
	{
		if (server->reader_pid != MyProcPid)
			remember_address(server);
		server->reader = reader;
		server->reader_pid = MyProcPid;
		server->last_pull = now;
	}
	LWLockRelease(ccm_shared->lock);
	if (taken)
		refuse(CCM_CAUSE_OTHER_READER, "this server has another reader");
}

/*
 * The hot pages of a slice that the reader lacks, from a buffer on, until they
 * are as many as may be.
 */
static void
find_missing(const Request *request, Answer *answer)
{
	const CcmFilter *filter = &request->filter;
	uint32		room = Min(request->max, 1024);
	int			position = request->start;
	CcmTag		tag;

	answer->tags = palloc(room * sizeof(CcmTag));
	while (ccm_scan_next(&position, request->min_usage, &tag))
	{
		if (ccm_tag_slice(&tag, filter->nslices) != filter->slice)
			continue;
		answer->found++;
		if (ccm_filter_has(filter, ccm_tag_hash(&tag, filter->seed)))
			continue;
		if (answer->count == room)
		{
			room = Min(room * 2, request->max);
			answer->tags = repalloc(answer->tags, room * sizeof(CcmTag));
		}
		answer->tags[answer->count++] = tag;
		if (answer->count == request->max)
			break;
	}
	answer->next = position < NBuffers ? position : -1;
	qsort(answer->tags, answer->count, sizeof(CcmTag), ccm_tag_compare);
}

/* A tag that was torn while it was read may be there twice. */
static void
drop_doubles(Answer *answer)
{
	uint32		kept = 0;

	for (uint32 i = 0; i < answer->count; i++)
		if (kept == 0 || !ccm_tag_equal(&answer->tags[kept - 1], &answer->tags[i]))
			answer->tags[kept++] = answer->tags[i];
	answer->count = kept;
}

/* The numbers of ccm.status() and aurora_ccm_status() */
static void
count_answer(const Request *request, const Answer *answer)
{
	CcmServer  *server = &ccm_shared->server;
	const CcmFilter *filter = &request->filter;
	int64		now = GetCurrentTimestamp() / USECS_PER_SEC;
	CcmSecond  *second = &server->seconds[now % CCM_MINUTE];
	int64		position = answer->next < 0 ? NBuffers : answer->next;

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	if (filter->slice == 0 && request->start == 0)
		server->sent_scan = server->found_scan = 0;
	server->sent_scan += answer->count;
	server->found_scan += answer->found;
	server->visited = ((int64) filter->slice * NBuffers + position) / filter->nslices;
	if (second->second != now)
		memset(second, 0, sizeof(*second));
	second->second = now;
	second->sent += answer->count;
	second->found += answer->found;
	if (answer->next < 0 && filter->slice == filter->nslices - 1)
	{
		server->sent_last_scan = server->sent_scan;
		server->found_last_scan = server->found_scan;
		server->scans++;
		session_scans++;
	}
	LWLockRelease(ccm_shared->lock);
}

static bytea *
encode(const Answer *answer)
{
	Size		room = CCM_BLOCKS_HEADER + (Size) answer->count * CCM_BYTES_PER_PAGE;
	bytea	   *result = palloc_extended(VARHDRSZ + room, MCXT_ALLOC_HUGE);
	CcmPeer		self;
	size_t		length;

	ccm_self(&self);
	length = ccm_blocks_write((unsigned char *) VARDATA(result), answer->tags,
							  answer->count, &self);
	SET_VARSIZE(result, VARHDRSZ + length);
	return result;
}

static void
read_request(Request *request, FunctionCallInfo fcinfo)
{
	check_argument("min_usage", PG_GETARG_INT32(3), 0, CCM_MAX_USAGE);
	check_argument("max", PG_GETARG_INT32(4), 1, MAX_PAGES);
	check_argument("start_buf", PG_GETARG_INT32(5), 0, NBuffers);
	if (!ccm_enabled)
		refuse(CCM_CAUSE_DISABLED, "Cluster Cache Manager is disabled");
	read_filter(&request->filter, PG_GETARG_BYTEA_PP(0));
	if (request->filter.slice != PG_GETARG_INT32(1) ||
		request->filter.nslices != PG_GETARG_INT32(2))
		refuse(CCM_CAUSE_MALFORMED, "malformed filter: it is of another slice");
	request->min_usage = PG_GETARG_INT32(3);
	request->max = PG_GETARG_INT32(4);
	request->start = PG_GETARG_INT32(5);
}

/*
 * pull(filter bytea, slice int, nslices int, min_usage int, max int, start_buf int,
 *		OUT blocks bytea, OUT next_buf int, OUT found bigint, OUT peer_filter bytea)
 */
Datum
ccm_pull(PG_FUNCTION_ARGS)
{
	Request		request = {0};
	Answer		answer = {0};
	CcmFilter	mirror = {0};
	TupleDesc	desc;
	Datum		values[4];
	bool		nulls[4] = {0};

	require_reader();
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE || desc->natts != 4)
		elog(ERROR, "ccm.pull is declared otherwise");
	read_request(&request, fcinfo);
	claim_reader(request.filter.reader);
	find_missing(&request, &answer);
	drop_doubles(&answer);
	count_answer(&request, &answer);

	values[0] = PointerGetDatum(encode(&answer));
	values[1] = Int32GetDatum(answer.next);
	values[2] = Int64GetDatum(answer.found);
	mirror.slice = request.filter.slice;
	mirror.nslices = request.filter.nslices;
	if (request.filter.flags != 0 && request.start == 0)
		values[3] = PointerGetDatum(filter_of_buffers(&mirror, (request.filter.flags & CCM_WANTS_MIRROR) ? 0 : request.min_usage));
	else
		nulls[3] = true;
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
