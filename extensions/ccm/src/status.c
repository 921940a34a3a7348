/*-------------------------------------------------------------------------
 *
 * status.c
 *		What a person sees of it: ccm.status() and aurora_ccm_status() on the
 *		side that is asked, ccm.reader_status() on the side that asks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "ccm.h"
#include "serve.h"

#define MAX_COLUMNS		32

PG_FUNCTION_INFO_V1(ccm_aurora_status);
PG_FUNCTION_INFO_V1(ccm_status);
PG_FUNCTION_INFO_V1(ccm_reader_status);

/* A row that is filled from left to right */
typedef struct Row
{
	Datum		values[MAX_COLUMNS];
	bool		nulls[MAX_COLUMNS];
	int			count;
} Row;

static void
put_bigint(Row *row, int64 value)
{
	row->values[row->count++] = Int64GetDatum(value);
}

static void
put_float(Row *row, double value, bool is_known)
{
	row->nulls[row->count] = !is_known;
	row->values[row->count++] = Float8GetDatum(value);
}

/* What is empty is not known. */
static void
put_text(Row *row, const char *value)
{
	row->nulls[row->count] = value[0] == '\0';
	row->values[row->count++] = CStringGetTextDatum(value);
}

static void
put_time(Row *row, TimestampTz value)
{
	row->nulls[row->count] = value == 0;
	row->values[row->count++] = TimestampTzGetDatum(value);
}

static Datum
finish_row(Row *row, FunctionCallInfo fcinfo)
{
	TupleDesc	desc;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE ||
		desc->natts != row->count)
		elog(ERROR, "the function is declared otherwise");
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), row->values, row->nulls));
}

/* The numbers of the side that is asked, or Aurora's error if nobody asks */
static void
get_server(CcmServer *server)
{
	ccm_require_library();
	LWLockAcquire(ccm_shared->lock, LW_SHARED);
	*server = ccm_shared->server;
	LWLockRelease(ccm_shared->lock);
	if (!ccm_enabled || server->last_pull == 0 ||
		TimestampDifferenceExceeds(server->last_pull, GetCurrentTimestamp(), CCM_READER_GONE_MS))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("Cluster Cache Manager is disabled")));
}

static void
last_minute(const CcmServer *server, int64 *sent, int64 *found)
{
	int64		now = GetCurrentTimestamp() / USECS_PER_SEC;

	*sent = *found = 0;
	for (int i = 0; i < CCM_MINUTE; i++)
	{
		if (server->seconds[i].second <= now - CCM_MINUTE)
			continue;
		*sent += server->seconds[i].sent;
		*found += server->seconds[i].found;
	}
}

/* Aurora's seven columns, in its order */
static void
put_aurora(Row *row, const CcmServer *server)
{
	int64		sent;
	int64		found;

	last_minute(server, &sent, &found);
	put_bigint(row, sent);
	put_bigint(row, found);
	put_bigint(row, server->sent_last_scan);
	put_bigint(row, server->found_last_scan);
	put_bigint(row, server->sent_scan);
	put_bigint(row, server->found_scan);
	put_bigint(row, server->visited);
}

Datum
ccm_aurora_status(PG_FUNCTION_ARGS)
{
	CcmServer	server;
	Row			row = {0};

	get_server(&server);
	put_aurora(&row, &server);
	PG_RETURN_DATUM(finish_row(&row, fcinfo));
}

Datum
ccm_status(PG_FUNCTION_ARGS)
{
	CcmServer	server;
	Row			row = {0};
	int64		sent;
	int64		found;

	get_server(&server);
	put_aurora(&row, &server);
	last_minute(&server, &sent, &found);
	put_float(&row, 100.0 * (1.0 - (double) server.sent_last_scan / Max(server.found_last_scan, 1)),
			  server.scans > 0);
	put_float(&row, (double) sent * (BLCKSZ / 1024) / CCM_MINUTE, true);
	put_bigint(&row, server.scans);
	put_time(&row, server.last_pull);
	put_text(&row, server.reader_address);
	row.nulls[row.count] = server.reader_pid == 0;
	row.values[row.count++] = Int32GetDatum(server.reader_pid);
	PG_RETURN_DATUM(finish_row(&row, fcinfo));
}

static const char *
state_name(const CcmReader *reader)
{
	static const char *const names[] = {
		[CCM_STATE_OFF] = "off",
		[CCM_STATE_CONNECTING] = "connecting",
		[CCM_STATE_SCANNING] = "scanning",
		[CCM_STATE_READING] = "reading",
		[CCM_STATE_WAITING] = "waiting",
		[CCM_STATE_PAUSED] = "paused",
		[CCM_STATE_HELD] = "held",
		[CCM_STATE_ERROR] = "error",
	};

	if (!RecoveryInProgress())
		return "primary";
	return reader->pid == 0 ? "stopped" : names[reader->state];
}

static void
put_scan(Row *row, const CcmScan *scan)
{
	put_bigint(row, scan->found);
	put_bigint(row, scan->received);
	put_bigint(row, scan->hit);
	put_bigint(row, scan->read);
	put_bigint(row, scan->skipped);
	put_bigint(row, scan->held_back);
	put_bigint(row, scan->demoted);
	put_bigint(row, scan->errors);
}

/*
 * How much of what is hot is here: what came and was not read is not. A long
 * scan read what was hot long ago. It shows what was here when it asked; how
 * much is here now, only the next one knows, which begins soon.
 */
static double
warm_percent(const CcmReader *reader)
{
	const CcmScan *scan = &reader->last;
	int64		lacking = scan->received - scan->hit;

	if (!reader->last_was_long)
		lacking -= scan->read;
	return 100.0 * (1.0 - (double) lacking / Max(scan->found, 1));
}

Datum
ccm_reader_status(PG_FUNCTION_ARGS)
{
	CcmReader	reader;
	Row			row = {0};

	ccm_require_library();
	LWLockAcquire(ccm_shared->lock, LW_SHARED);
	reader = ccm_shared->reader;
	LWLockRelease(ccm_shared->lock);
	put_text(&row, state_name(&reader));
	put_text(&row, ccm_cause_name(reader.paused));
	put_float(&row, warm_percent(&reader), reader.scans > 0);
	put_bigint(&row, reader.scans);
	put_time(&row, reader.last_scan_at);
	put_float(&row, reader.last_scan_us / 1000.0, reader.scans > 0);
	put_scan(&row, &reader.last);
	put_bigint(&row, reader.total.read);
	put_bigint(&row, reader.total.read * BLCKSZ);
	put_bigint(&row, reader.total.errors);
	put_bigint(&row, reader.cold);
	put_bigint(&row, reader.lag);
	put_text(&row, reader.upstream);
	put_text(&row, ccm_cause_name(reader.error));
	put_text(&row, reader.error_text);
	put_time(&row, reader.error_at);
	PG_RETURN_DATUM(finish_row(&row, fcinfo));
}
