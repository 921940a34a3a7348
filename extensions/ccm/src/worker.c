/*-------------------------------------------------------------------------
 *
 * worker.c
 *		The worker of a standby: asks its upstream again and again.
 *
 * It is connected to no database, so that it stands in the way of no DROP
 * DATABASE, here or by a lock on the upstream, and no recovery conflict ends
 * it. On a primary it has nothing to do and exits; promotion is where it ends.
 *
 * What matters to the cluster goes first. While replay is behind, the worker
 * pauses, and it reads no more pages than there are buffers that nobody would
 * miss (read.c). Where there are too few of these, because replay of a bulk load
 * has filled the cache, or sessions of the standby use it, what is not hot on
 * the upstream gets older with every scan, and what is not used here either
 * becomes cold. When anything fails it waits longer and longer, says so once
 * in the log, and goes on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/walreceiver.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/procsignal.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "ccm.h"

/* Pages of one answer: some 300 kB of them */
#define PULL_MAX		131072

/*
 * Pressed for room, the worker lets pages get older by so many rounds of the
 * clock in each scan: replay gives a page that it loads a usage count of 5, and
 * after two scans nothing is left of it. It does not while so much of the cache
 * (one part in so many) at the most is not hot on the upstream.
 */
#define AGE_ROUNDS		2
#define NOT_HOT_PART	8

/*
 * Each slice takes a look at all buffers, on either side. The filters of very
 * large caches get larger rather than more.
 */
#define MAX_SLICES		8

/* A standby of which nothing is wanted looks again after so long. */
#define IDLE_MS			60000
/* So long, where replay is not streaming yet: it may any moment. */
#define NOT_STREAMING_MS	500
#define BACKOFF_MS		60000
#define SOON_MS			1000
#define TICK_MS			1000

PGDLLEXPORT void ccm_leader_main(Datum arg);

/* The pages of a scan that are to be read */
typedef struct PageList
{
	CcmTag	   *tags;
	uint32		count;
	uint32		room;
} PageList;

static MemoryContext scan_context = NULL;	/* of one turn */
static MemoryContext mirror_context = NULL; /* of the upstream's filters */
static CcmFilter *mirror_peers = NULL;	/* one for each slice; no map: not known */
static uint32 mirror_slices = 0;
static TimestampTz mirror_at = 0;
static CcmPulled pulled;
static int	failures = 0;
static bool pressed = false;	/* the last scan left out what should be here */

void
ccm_register_worker(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = 10;
	strlcpy(worker.bgw_library_name, "ccm", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "ccm_leader_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "ccm", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "ccm", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}

/* How much WAL is here and not replayed */
static int64
replay_lag(void)
{
	XLogRecPtr	received = GetWalRcvFlushRecPtr(NULL, NULL);
	XLogRecPtr	replayed = GetXLogReplayRecPtr(NULL);
	int64		lag = received > replayed ? (int64) (received - replayed) : 0;

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	ccm_shared->reader.lag = lag;
	LWLockRelease(ccm_shared->lock);
	return lag;
}

/*
 * Has the walreceiver got through to the upstream? It counts as streaming while
 * it tries to connect, too.
 */
static bool
is_streaming(void)
{
	bool		connected;

	SpinLockAcquire(&WalRcv->mutex);
	connected = WalRcv->ready_to_display;
	SpinLockRelease(&WalRcv->mutex);
	return connected && WalRcvStreaming();
}

/*
 * Is replay near enough? A standby that was started replays what it has itself
 * before it streams. Until then nobody knows how much that is.
 */
static CcmCause
behind(void)
{
	int64		lag = replay_lag();

	if (ccm_max_replay_lag == 0)
		return CCM_CAUSE_NONE;
	if (PrimaryConnInfo[0] != '\0' && !is_streaming())
		return CCM_CAUSE_NOT_STREAMING;
	return lag > ccm_max_replay_lag ? CCM_CAUSE_LAG : CCM_CAUSE_NONE;
}

/*
 * May the scan go on? If not, the state says why.
 */
bool
ccm_go_on(void)
{
	CcmCause	cause;

	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	if (!RecoveryInProgress() || PromoteIsTriggered())
		return false;
	if (!ccm_enabled)
	{
		ccm_report_off();
		return false;
	}
	cause = behind();
	if (cause != CCM_CAUSE_NONE)
		ccm_set_state(CCM_STATE_PAUSED, cause);
	return cause == CCM_CAUSE_NONE;
}

static void
forget_mirror(void)
{
	mirror_peers = NULL;
	mirror_slices = 0;
	MemoryContextReset(mirror_context);
}

/* The upstream's own filters are kept until the next scan brings new ones. */
static void
begin_mirror(uint32 nslices)
{
	if (!ccm_mirror || mirror_slices == nslices)
		return;
	forget_mirror();
	mirror_peers = MemoryContextAllocZero(mirror_context, sizeof(CcmFilter) * nslices);
	mirror_slices = nslices;
}

static void
fail_with_fault(CcmFault fault, const char *what)
{
	static const CcmCause cause[] = {
		[CCM_MALFORMED] = CCM_CAUSE_MALFORMED,
		[CCM_OTHER_VERSION] = CCM_CAUSE_VERSION,
		[CCM_OTHER_SYSTEM] = CCM_CAUSE_SYSTEM,
		[CCM_OTHER_BLOCK_SIZE] = CCM_CAUSE_BLOCK_SIZE,
	};

	ccm_fail(cause[fault], "the upstream's %s: %s", what, ccm_cause_name(cause[fault]));
}

/*
 * The filter that came with an answer, copied: its map is what was allocated,
 * less the header.
 */
static CcmFilter
take_filter(const CcmFilter *ours, MemoryContext context)
{
	unsigned char *copy;
	CcmFilter	filter;
	CcmPeer		self;
	CcmFault	fault;

	ccm_self(&self);
	copy = MemoryContextAllocHuge(context, Max(pulled.mirror_length, 1));
	memcpy(copy, pulled.mirror, pulled.mirror_length);
	fault = ccm_filter_read(&filter, copy, pulled.mirror_length, &self);
	if (fault == CCM_OK && (filter.slice != ours->slice || filter.nslices != ours->nslices))
		fault = CCM_MALFORMED;
	if (fault != CCM_OK)
	{
		pfree(copy);
		fail_with_fault(fault, "filter");
	}
	return filter;
}

/* Do what the upstream's filter is for. */
static void
use_filter(const CcmFilter *ours, CcmScan *scan)
{
	CcmFilter  *peer;
	CcmFilter	filter;

	if (ours->flags & CCM_WANTS_HOT)
	{
		filter = take_filter(ours, CurrentMemoryContext);
		ccm_age_slice(&filter, AGE_ROUNDS);
		pfree(filter.map - CCM_FILTER_HEADER);
	}
	else if (mirror_slices == ours->nslices)
	{
		filter = take_filter(ours, mirror_context);
		peer = &mirror_peers[ours->slice];
		if (peer->map)
			pfree(peer->map - CCM_FILTER_HEADER);
		*peer = filter;
		mirror_at = GetCurrentTimestamp();
		scan->demoted += ccm_mirror_slices(mirror_peers, mirror_slices, false);
	}
}

/* Take what came: what is here already needs no reading. */
static void
take_answer(PageList *list, CcmScan *scan)
{
	CcmPeer		self;
	CcmFault	fault;
	uint32		count;
	CcmTag	   *tags;

	ccm_self(&self);
	fault = ccm_blocks_count(pulled.blocks, pulled.blocks_length, &self, &count);
	if (fault == CCM_OK && count > PULL_MAX)
		fault = CCM_MALFORMED;
	if (fault != CCM_OK)
		fail_with_fault(fault, "list of pages");
	if (list->count + count > list->room)
	{
		list->room = list->count + count;
		list->tags = list->tags ?
			repalloc_huge(list->tags, list->room * sizeof(CcmTag)) :
			MemoryContextAllocHuge(CurrentMemoryContext, list->room * sizeof(CcmTag));
	}
	tags = list->tags + list->count;
	fault = ccm_blocks_read(pulled.blocks, pulled.blocks_length, tags, count);
	if (fault != CCM_OK)
		fail_with_fault(fault, "list of pages");

	scan->found += pulled.found;
	scan->received += count;
	for (uint32 i = 0; i < count; i++)
	{
		if (ccm_raise_resident(&tags[i], ccm_bump_usage))
			scan->hit++;
		else if (ccm_is_bad(&tags[i]))
			scan->skipped++;
		else
			list->tags[list->count++] = tags[i];
	}
}

/* For tests: a point at which everything may happen to the relations */
static bool
hold(void)
{
	while (ccm_debug_hold)
	{
		ccm_set_state(CCM_STATE_HELD, CCM_CAUSE_NONE);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 50, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		if (!ccm_go_on())
			return false;
	}
	return true;
}

/*
 * A session that is idle stands in the way of a smart shutdown there, and of
 * whoever renames or copies its database. It stays only where the next question
 * comes soon.
 */
static void
end_session(void)
{
	if (ccm_interval >= CCM_STAY_MS)
		ccm_disconnect();
}

/* Have the pages read that were collected, and begin a new list. */
static void
read_list(PageList *list, uint32 slices_left, CcmScan *scan)
{
	if (list->count > 0)
		end_session();
	if (list->count > 0 && hold())
	{
		ccm_set_state(CCM_STATE_READING, CCM_CAUSE_NONE);
		ccm_read_pages(list->tags, list->count, slices_left, scan);
	}
	list->count = 0;
}

/*
 * One slice, which bounds the memory that a scan takes on either side. False
 * if the scan shall not go on.
 */
static bool
scan_slice(uint32 slice, uint32 nslices, CcmScan *scan)
{
	CcmFilter	filter = {0};
	PageList	list = {0};
	unsigned char *message;
	int			start = 0;

	filter.slice = slice;
	filter.nslices = nslices;
	filter.flags = ccm_mirror ? CCM_WANTS_MIRROR : pressed ? CCM_WANTS_HOT : 0;
	if (!pg_strong_random(&filter.seed, sizeof(filter.seed)))
		ccm_fail(CCM_CAUSE_OTHER, "could not get a random number");
	message = ccm_build_filter(&filter, ccm_keep_usage, 0);
	do
	{
		if (!ccm_go_on())
			return false;
		ccm_connect();
		ccm_set_state(CCM_STATE_SCANNING, CCM_CAUSE_NONE);
		ccm_pull_from_upstream(message, ccm_filter_bytes(&filter), &filter, PULL_MAX, start, &pulled);
		if (pulled.next != -1 && pulled.next <= start)
			fail_with_fault(CCM_MALFORMED, "answer");
		start = pulled.next;
		take_answer(&list, scan);
		if (pulled.mirror != NULL)
			use_filter(&filter, scan);
		ccm_pulled_free(&pulled);
		if (start < 0 || list.count >= ccm_slice_buffers)
			read_list(&list, nslices - slice, scan);
	} while (start >= 0);
	pfree(message);
	if (list.tags)
		pfree(list.tags);
	return true;
}

/* Should more be here, and is there something that could go instead? */
static bool
is_pressed(const CcmScan *scan)
{
	int64		hot_here = scan->found - scan->received + scan->hit + scan->read;

	return scan->held_back > 0 && NBuffers - hot_here > NBuffers / NOT_HOT_PART;
}

/*
 * One scan; how long to wait until the next, in milliseconds. What was hot when
 * a long one asked may not be hot any more, so the next one begins soon.
 */
static long
scan_upstream(void)
{
	uint32		nslices = Min((NBuffers - 1) / ccm_slice_buffers + 1, MAX_SLICES);
	TimestampTz begin = GetCurrentTimestamp();
	CcmScan		scan = {0};
	int64		took;
	bool		is_long;

	begin_mirror(nslices);
	for (uint32 slice = 0; slice < nslices; slice++)
		if (!scan_slice(slice, nslices, &scan))
			return ccm_interval;
	pressed = is_pressed(&scan);
	if (!ccm_go_on())
		return ccm_interval;
	took = GetCurrentTimestamp() - begin;
	is_long = took > (int64) ccm_interval * 1000;
	ccm_report_scan(&scan, took, is_long);
	return is_long ? Min(ccm_interval, SOON_MS) : ccm_interval;
}

/*
 * How long to rest where ccm_go_on() said no. An upstream that went away takes
 * our connection with it: that should not be found out when it is back.
 */
static long
rest(void)
{
	bool		is_away = ccm_enabled && behind() == CCM_CAUSE_NOT_STREAMING;

	if (!ccm_enabled || is_away)
		ccm_disconnect();
	if (is_away)
		return Min(ccm_interval, NOT_STREAMING_MS);
	return ccm_enabled ? ccm_interval : IDLE_MS;
}

/* One turn; how long to wait until the next, in milliseconds */
static long
take_turn(void)
{
	long		ms;

	if (!RecoveryInProgress())
	{
		ccm_disconnect();
		proc_exit(0);
	}
	if (!ccm_mirror && mirror_peers)
		forget_mirror();
	if (!ccm_go_on())
		return rest();
	ccm_connect();
	ms = scan_upstream();
	end_session();
	failures = 0;
	return ms;
}

/* After an error: what the turn held is given back, and reported once. */
static long
recover(ErrorData *error)
{
	LWLockReleaseAll();
	ConditionVariableCancelSleep();
	pgstat_report_wait_end();
	ccm_abandon_job();
	ccm_pulled_free(&pulled);
	ccm_disconnect();
	if (RecoveryInProgress())
		ccm_report_failure(ccm_cause_of_error(error->sqlerrcode), error->message);
	failures = Min(failures + 1, 16);
	return Min((long) ccm_interval << failures, BACKOFF_MS);
}

static long
try_turn(void)
{
	volatile long ms = 0;

	MemoryContextSwitchTo(scan_context);
	PG_TRY();
	{
		ms = take_turn();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(scan_context);
		error = CopyErrorData();
		FlushErrorState();
		ms = recover(error);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(TopMemoryContext);
	MemoryContextReset(scan_context);
	return ms;
}

/*
 * Between two scans, mirror mode goes on with what it knows: what replay has
 * brought meanwhile is the next to go, before it has pushed out what is hot.
 * While there are free buffers nothing is pushed out. Where the cache is so
 * large that this takes its time, it is done less often.
 */
static void
mirror_again(void)
{
	static TimestampTz due = 0;
	TimestampTz begin = GetCurrentTimestamp();
	TimestampTz end;

	if (begin < due || mirror_peers == NULL || !ccm_enabled || !ccm_mirror || have_free_buffer() ||
		TimestampDifferenceExceeds(mirror_at, begin, 3 * ccm_interval + 10000))
		return;
	(void) ccm_mirror_slices(mirror_peers, mirror_slices, true);
	end = GetCurrentTimestamp();
	due = end + 20 * (end - begin);
}

static void
wait_for_turn(long ms)
{
	TimestampTz deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);

	for (;;)
	{
		long		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);

		if (left <= 0 || !RecoveryInProgress())
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(left, TICK_MS), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			return;
		}
		if (RecoveryInProgress())
			mirror_again();
	}
}

static void
set_pid(int pid)
{
	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	ccm_shared->reader.pid = pid;
	LWLockRelease(ccm_shared->lock);
}

/* Whoever reads for us must not outlive us: another leader would start another. */
static void
leave(int code, Datum arg)
{
	ccm_abandon_job();
	set_pid(0);
}

void
ccm_leader_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	/* Without a database it would not be asked to close files, and wait. */
	pqsignal(SIGUSR1, procsignal_sigusr1_handler);
	BackgroundWorkerUnblockSignals();

	scan_context = AllocSetContextCreate(TopMemoryContext, "ccm scan", ALLOCSET_DEFAULT_SIZES);
	mirror_context = AllocSetContextCreate(TopMemoryContext, "ccm mirror", ALLOCSET_DEFAULT_SIZES);
	before_shmem_exit(leave, 0);
	set_pid(MyProcPid);
	ccm_report_off();
	/* A reload between our fork and the handler was lost. */
	ConfigReloadPending = true;
	for (;;)
		wait_for_turn(try_turn());
}
