/*-------------------------------------------------------------------------
 *
 * read.c
 *		Has pages read: as many as the cache can take, by a short-lived
 *		worker for each database.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "catalog/pg_database_d.h"
#include "common/relpath.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "ccm.h"

/* A worker that makes no step for so long, or does not end, is ended. */
#define STALL_MS			5000
#define STOP_MS				2000

/* Which part of the cache has to be cold before any of it is taken */
#define WORTH_A_ROUND		128

static dsm_segment *segment = NULL;
static int64 cold_floor = 0;	/* with fewer cold buffers the job ends */
static bool is_full = false;	/* it has */
static BackgroundWorkerHandle *reader = NULL;	/* the worker that reads now */
static CcmPace pace = {0};		/* what the disk has room for, from job to job */

/* Was there trouble with this relation, or with its database? */
bool
ccm_is_bad(const CcmTag *tag)
{
	TimestampTz now = 0;
	bool		found = false;

	LWLockAcquire(ccm_shared->lock, LW_SHARED);
	for (int i = 0; i < CCM_NBAD && !found; i++)
	{
		const CcmBad *bad = &ccm_shared->bad[i];

		if (bad->until == 0 || bad->db != tag->db ||
			(bad->rel != 0 && (bad->rel != tag->rel || bad->spc != tag->spc)))
			continue;
		if (now == 0)
			now = GetCurrentTimestamp();
		found = bad->until > now;
	}
	LWLockRelease(ccm_shared->lock);
	return found;
}

/* The place of what failed before, or the one that is over first */
static void
leave_alone(uint32 db, uint32 spc, uint32 rel, int ms)
{
	CcmBad	   *place = &ccm_shared->bad[0];

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	for (int i = 0; i < CCM_NBAD; i++)
	{
		CcmBad	   *bad = &ccm_shared->bad[i];

		if (bad->db == db && bad->spc == spc && bad->rel == rel)
		{
			place = bad;
			break;
		}
		if (bad->until < place->until)
			place = bad;
	}
	place->db = db;
	place->spc = spc;
	place->rel = rel;
	place->until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);
	LWLockRelease(ccm_shared->lock);
}

/* Leave a relation alone for a while. */
void
ccm_mark_bad(const CcmTag *tag)
{
	leave_alone(tag->db, tag->spc, tag->rel, CCM_BAD_RELATION_MS);
}

void
ccm_mark_database_bad(uint32 database, int ms)
{
	leave_alone(database, 0, 0, ms);
}

static int
compare_usage(const void *a, const void *b)
{
	return ((const CcmTag *) b)->usage - ((const CcmTag *) a)->usage;
}

static int64
count_cold(void)
{
	int64		cold = ccm_count_cold();

	LWLockAcquire(ccm_shared->lock, LW_EXCLUSIVE);
	ccm_shared->reader.cold = cold;
	LWLockRelease(ccm_shared->lock);
	return cold;
}

/*
 * Every page that is read takes a buffer from another. A cache that is smaller
 * than what is hot would turn round and round, so pages are only put where
 * there is nothing that anybody would miss. The hottest are taken.
 *
 * The hand of the clock, which looks for these buffers, goes round twice at
 * most, and takes one off every usage count each time. What is hot here has
 * ccm.keep_usage at least, or it would have been sent again and raised: with 3
 * it survives. For a few buffers alone the hand is not sent round, and the
 * slices of a scan share what there is.
 */
static uint32
limit_to_cold(CcmTag *tags, uint32 count, uint32 slices_left, CcmScan *scan)
{
	int64		cold = count_cold();
	int64		budget = cold < NBuffers / WORTH_A_ROUND ? 0 : (cold - cold / 10) / slices_left;

	cold_floor = Min(NBuffers / WORTH_A_ROUND, cold / 10);
	if (count <= budget)
		return count;
	qsort(tags, count, sizeof(CcmTag), compare_usage);
	scan->held_back += count - budget;
	return budget;
}

/*
 * A job may take minutes, and others use the cache meanwhile. Is there so little
 * left that is cold that it should end? In a very large cache this is asked less
 * often, as it takes its time.
 */
static bool
cache_is_full(void)
{
	static TimestampTz due = 0;
	TimestampTz begin = GetCurrentTimestamp();

	if (begin < due)
		return false;
	is_full = count_cold() < cold_floor;
	due = begin + Max(USECS_PER_SEC, 20 * (GetCurrentTimestamp() - begin));
	return is_full;
}

static CcmJob *
make_job(const CcmTag *tags, uint32 count)
{
	CcmJob	   *job;

	segment = dsm_create(offsetof(CcmJob, tags) + sizeof(CcmTag) * (Size) count, 0);
	job = dsm_segment_address(segment);
	memset(job, 0, offsetof(CcmJob, tags));
	memcpy(job->tags, tags, sizeof(CcmTag) * (Size) count);
	job->rate = ccm_rate;
	job->batch = ccm_batch;
	if (job->rate > 0)
		ccm_pace_begin(&pace, job->rate, GetCurrentTimestamp());
	job->pace = pace;
	job->bump = ccm_bump_usage;
	pg_atomic_init_u32(&job->stop, 0);
	pg_atomic_init_u32(&job->connected, 0);
	pg_atomic_init_u32(&job->done, 0);
	pg_atomic_init_u64(&job->progress, 0);
	pg_atomic_init_u64(&job->read, 0);
	pg_atomic_init_u64(&job->hit, 0);
	pg_atomic_init_u64(&job->skipped, 0);
	pg_atomic_init_u64(&job->errors, 0);
	return job;
}

/*
 * A worker that still reads stops at the next page, or where it waits for
 * something; its memory is its own. This is also how the leader exits.
 */
void
ccm_abandon_job(void)
{
	if (reader != NULL)
		TerminateBackgroundWorker(reader);
	reader = NULL;
	if (segment == NULL)
		return;
	pg_atomic_write_u32(&((CcmJob *) dsm_segment_address(segment))->stop, 1);
	dsm_detach(segment);
	segment = NULL;
}

static void
start_worker(void)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_ConsistentState;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(segment));
	worker.bgw_notify_pid = MyProcPid;
	strlcpy(worker.bgw_library_name, "ccm", BGW_MAXLEN);
	strlcpy(worker.bgw_function_name, "ccm_database_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "ccm reader", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "ccm reader", BGW_MAXLEN);
	if (!RegisterDynamicBackgroundWorker(&worker, &reader))
	{
		reader = NULL;
		ccm_fail(CCM_CAUSE_WORKERS, "max_worker_processes leaves no worker for reading");
	}
}

/*
 * Until the worker is gone. False if nothing more shall be read.
 *
 * It takes no lock that is not free, but to look for a relation it reads
 * catalogs. Where somebody has one of them locked on the primary, replay has
 * the lock here, for as long as it likes. The worker gives up by itself then
 * (warm.c); this is for whatever else it might wait for. One database must not
 * keep the others from being read.
 */
static bool
wait_for_worker(CcmJob *job)
{
	bool		go_on = true;
	uint64		seen = 0;
	TimestampTz since = GetCurrentTimestamp();
	pid_t		pid;

	while (GetBackgroundWorkerPid(reader, &pid) != BGWH_STOPPED)
	{
		uint64		progress = pg_atomic_read_u64(&job->progress);
		bool		stop = go_on && (!ccm_go_on() || cache_is_full());

		if (stop)
			pg_atomic_write_u32(&job->stop, 1);
		if (stop || (go_on && progress != seen))
			since = GetCurrentTimestamp();
		go_on = go_on && !stop;
		seen = progress;
		if (TimestampDifferenceExceeds(since, GetCurrentTimestamp(), go_on ? STALL_MS : STOP_MS))
			TerminateBackgroundWorker(reader);
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 100, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	pfree(reader);
	reader = NULL;
	return go_on;
}

/*
 * A database that was dropped, or whose creation was not replayed yet, has no
 * directory: no worker needs to find out.
 */
static bool
database_exists(const CcmJob *job)
{
	Oid			last = InvalidOid;

	for (uint32 i = job->begin; i < job->end; i++)
	{
		char	   *path;
		bool		exists;

		if (job->tags[i].db == 0 || job->tags[i].spc == last)
			continue;
		last = job->tags[i].spc;
		path = GetDatabasePath(job->tags[i].db, last);
		exists = access(path, F_OK) == 0;
		pfree(path);
		if (exists)
			return true;
	}
	return job->database == Template1DbOid;
}

/* Read what belongs to one database. False if nothing more shall be read. */
static bool
read_database(CcmJob *job, CcmScan *scan)
{
	CcmTag		database = {.db = job->database};
	bool		go_on;

	if (ccm_is_bad(&database) || !database_exists(job))
	{
		scan->skipped += job->end - job->begin;
		return true;
	}
	pg_atomic_write_u32(&job->connected, 0);
	pg_atomic_write_u32(&job->done, 0);
	start_worker();
	go_on = wait_for_worker(job);
	if (go_on && pg_atomic_read_u32(&job->done) == 0)
	{
		ccm_mark_database_bad(job->database, CCM_BAD_DATABASE_MS);
		scan->errors++;
	}
	return go_on;
}

/*
 * The end of the pages of a database. What all databases share comes first in
 * the order, and is read along with the first database: any will do.
 */
static uint32
end_of_database(CcmJob *job, uint32 begin, uint32 count)
{
	uint32		end = begin;

	job->database = Template1DbOid;
	while (end < count && job->tags[end].db == 0)
		end++;
	if (end == count)
		return end;
	job->database = job->tags[end].db;
	while (end < count && job->tags[end].db == job->database)
		end++;
	return end;
}

/* The numbers of a job; how many of its pages they account for */
static int64
take_numbers(CcmJob *job, CcmScan *scan)
{
	int64		read = pg_atomic_read_u64(&job->read);
	int64		hit = pg_atomic_read_u64(&job->hit);
	int64		skipped = pg_atomic_read_u64(&job->skipped);

	scan->read += read;
	scan->hit += hit;
	scan->skipped += skipped;
	scan->errors += pg_atomic_read_u64(&job->errors);
	return read + hit + skipped;
}

/* Have these pages read. The list is not the same afterwards. */
void
ccm_read_pages(CcmTag *tags, uint32 count, uint32 slices_left, CcmScan *scan)
{
	int64		skipped = scan->skipped;
	int64		done;
	CcmJob	   *job;

	count = limit_to_cold(tags, count, slices_left, scan);
	if (count == 0)
		return;
	qsort(tags, count, sizeof(CcmTag), ccm_tag_compare);
	job = make_job(tags, count);
	is_full = false;
	for (uint32 begin = 0; begin < count; begin = job->end)
	{
		job->begin = begin;
		job->end = end_of_database(job, begin, count);
		if (!read_database(job, scan))
			break;
	}
	done = scan->skipped - skipped + take_numbers(job, scan);
	if (is_full)
		scan->held_back += Max(count - done, 0);
	pace = job->pace;
	dsm_detach(segment);
	segment = NULL;
}
