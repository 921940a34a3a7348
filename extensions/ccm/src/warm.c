/*-------------------------------------------------------------------------
 *
 * warm.c
 *		The short-lived worker that reads pages of one database.
 *
 * A page may only be read under its relation's lock. Replay drops and
 * truncates under a logged AccessExclusiveLock: a page that was read after
 * replay had emptied the cache of it would stay, valid and wrong, and break
 * the relation once it grows again. And a lock names a database, so the worker
 * must be connected to it.
 *
 * Replay must not wait for us, either. The lock is taken if it is free, and
 * held for one batch, a tenth of a second at most; a snapshot is not held, and
 * the sleeps that keep the pace are between batches. If replay wants something
 * of ours nevertheless it cancels us, which costs the rest of the relation
 * until the next scan. DROP DATABASE ends the worker, and the scan goes on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "access/xlogrecovery.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/smgr.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "ccm.h"
#include "serve.h"

/* How long one batch may hold the lock, and how many pages are read ahead */
#define HOLD_MS			100
#define MAX_AHEAD		64

/* After so many errors nothing more is read of a database. */
#define MAX_FAILURES	3

PGDLLEXPORT void ccm_database_main(Datum arg);

static bool give_up = false;	/* no more of this database */
static int64 reading = 0;		/* how long the last batch was read, in microseconds */

/* Where the relation and the fork end that are being read */
typedef struct Run
{
	uint32		relation;
	uint32		fork;
} Run;

/* What is read under one lock: pages of one fork */
typedef struct Batch
{
	CcmJob	   *job;
	Relation	rel;
	ForkNumber	fork;
	uint32		next;			/* of the job's tags */
	uint32		end;
	TimestampTz deadline;
} Batch;

/* Show the leader that there is something that moves. */
static void
step(CcmJob *job)
{
	pg_atomic_fetch_add_u64(&job->progress, 1);
}

static bool
same_relation(const CcmTag *a, const CcmTag *b)
{
	return a->db == b->db && a->spc == b->spc && a->rel == b->rel;
}

static uint32
end_of_relation(const CcmJob *job, uint32 begin)
{
	uint32		end = begin + 1;

	while (end < job->end && same_relation(&job->tags[begin], &job->tags[end]))
		end++;
	return end;
}

static uint32
end_of_fork(const CcmJob *job, uint32 begin)
{
	uint32		end = begin + 1;

	while (end < job->end && same_relation(&job->tags[begin], &job->tags[end]) &&
		   job->tags[begin].fork == job->tags[end].fork)
		end++;
	return end;
}

/* Give a pinned page, whose tag cannot change, the upstream's usage count. */
static void
raise_usage(const CcmJob *job, Buffer buffer, uint8 usage)
{
	BufferDesc *desc = GetBufferDescriptor(buffer - 1);
	uint32		state;

	if (!job->bump)
		return;
	state = LockBufHdr(desc);
	if (BUF_STATE_GET_USAGECOUNT(state) < usage)
		state += (usage - BUF_STATE_GET_USAGECOUNT(state)) * BUF_USAGECOUNT_ONE;
	UnlockBufHdr(desc, state);
}

static bool
batch_is_over(const Batch *batch)
{
	return batch->next >= batch->end ||
		pg_atomic_read_u32(&batch->job->stop) != 0 ||
		GetCurrentTimestamp() >= batch->deadline;
}

/* The system is told of pages some way ahead of our reading them. */
static void
read_pages(Batch *batch, ReadBufferMode mode)
{
	CcmTag	   *tags = batch->job->tags;
	uint32		ahead = Min(maintenance_io_concurrency, MAX_AHEAD);
	uint32		told = batch->next;

	while (!batch_is_over(batch))
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		for (; told < batch->end && told < batch->next + ahead; told++)
			PrefetchBuffer(batch->rel, batch->fork, tags[told].block);
		buffer = ReadBufferExtended(batch->rel, batch->fork, tags[batch->next].block,
									mode, NULL);
		raise_usage(batch->job, buffer, tags[batch->next].usage);
		ReleaseBuffer(buffer);
		step(batch->job);
		batch->next++;
	}
}

#ifdef CCM_READ_STREAM

/* The next page that the stream should read; it may be far ahead of us. */
static BlockNumber
next_block(ReadStream *stream, void *callback_data, void *buffer_data)
{
	Batch	   *batch = callback_data;
	CcmTag	   *tag;

	if (batch_is_over(batch))
		return InvalidBlockNumber;
	tag = &batch->job->tags[batch->next++];
	*(uint8 *) buffer_data = tag->usage;
	return tag->block;
}

static void
read_main_pages(Batch *batch)
{
	ReadStream *stream = read_stream_begin_relation(CCM_STREAM_FLAGS, NULL, batch->rel,
													batch->fork, next_block, batch, sizeof(uint8));
	Buffer		buffer;
	void	   *usage;

	/* It has looked for the tablespace: no snapshot is held while we read. */
	InvalidateCatalogSnapshot();
	while ((buffer = read_stream_next_buffer(stream, &usage)) != InvalidBuffer)
	{
		raise_usage(batch->job, buffer, *(uint8 *) usage);
		ReleaseBuffer(buffer);
		step(batch->job);
		CHECK_FOR_INTERRUPTS();
	}
	read_stream_end(stream);
}

#else

static void
read_main_pages(Batch *batch)
{
	read_pages(batch, RBM_NORMAL);
}

#endif

/*
 * The maps of a relation may be torn, as they are not always logged. PostgreSQL
 * takes such a page of theirs for an empty one, and so do we.
 */
static void
read_batch(Batch *batch)
{
	if (batch->fork == MAIN_FORKNUM)
		read_main_pages(batch);
	else
		read_pages(batch, RBM_ZERO_ON_ERROR);
}

/*
 * Open the relation of a page, if it can be locked at once. Who has the file
 * now is looked up without a lock, so it is looked at again under the lock:
 * replay gives the lock of a relation back before it unlinks the old file.
 */
static Relation
open_relation(const CcmTag *tag)
{
	Oid			relid = RelidByRelfilenumber(tag->spc, tag->rel);
	Relation	rel;

	if (!OidIsValid(relid) || !ConditionalLockRelationOid(relid, AccessShareLock))
		return NULL;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		return NULL;
	if (rel->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT &&
		RELKIND_HAS_STORAGE(rel->rd_rel->relkind) &&
		rel->rd_locator.spcOid == tag->spc && rel->rd_locator.dbOid == tag->db &&
		rel->rd_locator.relNumber == tag->rel)
		return rel;
	relation_close(rel, NoLock);
	return NULL;
}

/*
 * Where the pages end that the fork has here: replay may not be there yet. They
 * are in order, and a fork may have many batches.
 */
static uint32
end_of_pages(const CcmJob *job, Relation rel, uint32 begin, uint32 end)
{
	SMgrRelation smgr = RelationGetSmgr(rel);
	ForkNumber	fork = job->tags[begin].fork;
	BlockNumber nblocks = smgrexists(smgr, fork) ? smgrnblocks(smgr, fork) : 0;

	while (begin < end)
	{
		uint32		middle = begin + (end - begin) / 2;

		if (job->tags[middle].block < nblocks)
			begin = middle + 1;
		else
			end = middle;
	}
	return end;
}

/* A batch is read as fast as it can be: a tenth of a second's at most. */
static uint32
batch_size(const CcmJob *job)
{
	return job->rate == 0 ? job->batch : Min(job->batch, Max(1, job->pace.pages / 10));
}

static void
count_batch(CcmJob *job, uint32 done, int64 read, uint32 skipped)
{
	read = Min(read, done);
	pg_atomic_fetch_add_u64(&job->read, read);
	pg_atomic_fetch_add_u64(&job->hit, done - read);
	pg_atomic_fetch_add_u64(&job->skipped, skipped);
}

/* Read a batch from a page on, in a transaction; returns where to go on. */
static uint32
warm_batch(CcmJob *job, uint32 begin, const Run *run)
{
	Batch		batch = {.job = job,.fork = job->tags[begin].fork,.next = begin};
	uint32		end;
	int64		before;

	batch.rel = open_relation(&job->tags[begin]);
	if (batch.rel == NULL)
	{
		count_batch(job, 0, 0, run->relation - begin);
		return run->relation;
	}
	/* A snapshot that is left from the look-ups would hold back replay. */
	InvalidateCatalogSnapshot();
	end = end_of_pages(job, batch.rel, begin, run->fork);
	batch.end = Min(end, begin + batch_size(job));
	batch.deadline = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), HOLD_MS);
	before = pgBufferUsage.shared_blks_read;
	if (batch.end > begin)
	{
		TimestampTz since = GetCurrentTimestamp();

		read_batch(&batch);
		reading = GetCurrentTimestamp() - since;
	}
	count_batch(job, batch.next - begin, pgBufferUsage.shared_blks_read - before, 0);
	relation_close(batch.rel, AccessShareLock);
	if (batch.next < end)
		return batch.next;
	count_batch(job, 0, 0, run->fork - end);
	return run->fork;
}

/* This database is left for a while, and what else there is to read in it. */
static void
leave_database(const CcmJob *job, int ms)
{
	ccm_mark_database_bad(job->database, ms);
	give_up = true;
}

/*
 * Something that is most likely a broken page: the relation is left alone for a
 * while. Where it is the storage that is broken there are many of them, and no
 * line for each.
 */
static void
leave_relation(CcmJob *job, const CcmTag *tag, const ErrorData *error)
{
	static int	failures = 0;

	ccm_mark_bad(tag);
	if (++failures == 1)
		ereport(LOG,
				(errmsg("ccm: relation file %u of database %u is left alone for an hour: %s",
						tag->rel, tag->db, error->message)));
	if (failures >= MAX_FAILURES)
		leave_database(job, CCM_BAD_STORAGE_MS);
}

/*
 * After an error the relation is left to the next scan. A conflict with replay
 * is nothing to talk about. A lock that did not become free is one of a catalog,
 * which the next relation would wait for, too.
 */
static void
forgive(CcmJob *job, const CcmTag *tag, ErrorData *error)
{
	pg_atomic_fetch_add_u64(&job->errors, 1);
	switch (error->sqlerrcode)
	{
		case ERRCODE_T_R_SERIALIZATION_FAILURE:
		case ERRCODE_T_R_DEADLOCK_DETECTED:
		case ERRCODE_QUERY_CANCELED:
			break;
		case ERRCODE_LOCK_NOT_AVAILABLE:
			leave_database(job, CCM_BAD_DATABASE_MS);
			break;
		default:
			leave_relation(job, tag, error);
	}
}

static uint32
try_batch(CcmJob *job, uint32 begin, const Run *run)
{
	volatile uint32 next = run->relation;
	MemoryContext context = CurrentMemoryContext;

	PG_TRY();
	{
		StartTransactionCommand();
		next = warm_batch(job, begin, run);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		HOLD_INTERRUPTS();
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		AbortCurrentTransaction();
		FlushErrorState();
		MemoryContextSwitchTo(context);
		forgive(job, &job->tags[begin], error);
		FreeErrorData(error);
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return next;
}

static bool
may_go_on(CcmJob *job)
{
	CHECK_FOR_INTERRUPTS();
	step(job);
	return !give_up && pg_atomic_read_u32(&job->stop) == 0 && RecoveryInProgress() && !PromoteIsTriggered();
}

/*
 * Wait until as many pages more may be read as were read just now. After a
 * stall the pace is what it was: of what was not read meanwhile, a second's
 * worth is made up for, but not if it was the disk that stalled.
 */
static void
keep_pace(CcmJob *job, TimestampTz *due, uint64 pages)
{
	TimestampTz now = GetCurrentTimestamp();

	if (job->rate == 0)
		return;
	if (ccm_pace_read(&job->pace, job->rate, pages, pages > 0 ? reading : 0, now))
		*due = now;
	*due = Max(*due, now - USECS_PER_SEC) + (TimestampTz) (pages * USECS_PER_SEC / job->pace.pages);
	while (may_go_on(job))
	{
		long		ms = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), *due);

		if (ms <= 0)
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(ms, 200), PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
}

static void
read_job(CcmJob *job)
{
	TimestampTz due = GetCurrentTimestamp();
	Run			run = {0};

	for (uint32 next = job->begin; next < job->end && may_go_on(job);)
	{
		uint64		before = pg_atomic_read_u64(&job->read);

		reading = 0;
		if (next >= run.relation)
			run.relation = end_of_relation(job, next);
		if (next >= run.fork)
			run.fork = end_of_fork(job, next);
		next = try_batch(job, next, &run);
		pgstat_report_stat(false);
		keep_pace(job, &due, pg_atomic_read_u64(&job->read) - before);
	}
}

/*
 * Whoever owns the database may have settings for it, which would end us again
 * and again, or have us wait. Ours are set first, and those do not count then.
 * A lock that is not free at once is somebody's for longer.
 */
static void
override_settings(void)
{
	static const char *const settings[][2] = {
		{"lock_timeout", "200ms"},
		{"statement_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"idle_session_timeout", "0"},
		{"exit_on_error", "off"},
		CCM_MORE_TIMEOUTS
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_USERSET, PGC_S_OVERRIDE);
}

void
ccm_database_main(Datum arg)
{
	dsm_segment *segment;
	CcmJob	   *job;

	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	segment = dsm_attach(DatumGetUInt32(arg));
	if (segment == NULL)
		return;					/* nobody waits for us any more */
	job = dsm_segment_address(segment);
	override_settings();
	/* Replay may be in the middle of making it, or has a lock in it. */
	ccm_hush_connecting(true);
	BackgroundWorkerInitializeConnectionByOid(job->database, InvalidOid, BGWORKER_BYPASS_ALLOWCONN);
	ccm_hush_connecting(false);
	pg_atomic_write_u32(&job->connected, 1);
	pgstat_report_activity(STATE_RUNNING, "reading what is hot on the upstream");

	read_job(job);
	pgstat_report_stat(true);
	pg_atomic_write_u32(&job->done, 1);
}
