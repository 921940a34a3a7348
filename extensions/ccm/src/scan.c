/*-------------------------------------------------------------------------
 *
 * scan.c
 *		The buffers of this server: what is in them, and their usage counts.
 *
 * A scan of all buffers takes no lock, neither of the mapping nor of a single
 * buffer: it would cost the sessions of a busy primary cache lines. A buffer
 * may get another page while its tag is read, and a tag that is half of one
 * and half of the other names a page that most likely does not exist. All that
 * is done with tags stands that: in a filter it is a bit too many, and a page
 * that is asked for in vain is skipped by whoever looks for its relation.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xlog.h"
#include "catalog/pg_tablespace_d.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "postmaster/postmaster.h"
#include "utils/memutils.h"

#include "compat.h"
#include "ccm.h"

/* How many buffers are looked at between two checks for interrupts */
#define INTERRUPT_EVERY		4096

StaticAssertDecl(GLOBALTABLESPACE_OID == CCM_GLOBAL_SPACE && InvalidBlockNumber == CCM_NO_BLOCK,
				 "tag.h knows PostgreSQL's numbers");

/* What both sides must have in common */
void
ccm_self(CcmPeer *self)
{
	self->system = GetSystemIdentifier();
	self->block_size = BLCKSZ;
}

/*
 * Who we are, to an upstream that serves one reader. It has to be the same
 * after a restart, and another on every server; a file in the data directory
 * would be copied by base backups.
 */
uint64
ccm_reader_id(void)
{
	static uint64 id = 0;

	if (id == 0)
	{
		char		host[256] = "";

		gethostname(host, sizeof(host) - 1);
		id = hash_bytes_extended((unsigned char *) host, strlen(host), PostPortNumber) ^
			hash_bytes_extended((unsigned char *) DataDir, strlen(DataDir), 1);
		id |= 1;				/* 0 is nobody */
	}
	return id;
}

static inline bool
state_matters(uint32 state, int min_usage)
{
	const uint32 wanted = BM_TAG_VALID | BM_VALID | BM_PERMANENT;

	return (state & wanted) == wanted &&
		BUF_STATE_GET_USAGECOUNT(state) >= min_usage;
}

static inline void
copy_tag(const BufferTag *from, CcmTag *tag)
{
	RelFileLocator locator = BufTagGetRelFileLocator(from);

	tag->db = locator.dbOid;
	tag->spc = locator.spcOid;
	tag->rel = locator.relNumber;
	tag->fork = (uint8) BufTagGetForkNum(from);
	tag->block = from->blockNum;
}

static inline void
make_buffer_tag(const CcmTag *tag, BufferTag *to)
{
	RelFileLocator locator;

	locator.dbOid = tag->db;
	locator.spcOid = tag->spc;
	locator.relNumber = tag->rel;
	InitBufferTag(to, &locator, (ForkNumber) tag->fork, tag->block);
}

/*
 * The next permanent page that is cached with at least this usage count, from
 * a buffer on; false if there is none. An init fork is no page of anybody's
 * workload. Of the tags that were torn, those that are no page's are dropped: the
 * other side would take them for rubbish.
 */
bool
ccm_scan_next(int *position, int min_usage, CcmTag *tag)
{
	int			i = *position;

	for (; i < NBuffers; i++)
	{
		BufferDesc *buffer = GetBufferDescriptor(i);
		uint32		state;

		if (i % INTERRUPT_EVERY == 0)
			CHECK_FOR_INTERRUPTS();
		state = pg_atomic_read_u32(&buffer->state);
		if (!state_matters(state, min_usage))
			continue;
		pg_read_barrier();
		copy_tag(&buffer->tag, tag);
		if (tag->fork >= INIT_FORKNUM || !ccm_tag_possible(tag))
			continue;
		tag->usage = (uint8) Min(BUF_STATE_GET_USAGECOUNT(state), CCM_MAX_USAGE);
		*position = i + 1;
		return true;
	}
	*position = i;
	return false;
}

/* The hashes of the pages of a slice; how many there are goes to count. */
static uint64 *
collect_hashes(const CcmFilter *filter, int min_usage, uint32 *count)
{
	Size		room = 1024 + NBuffers / filter->nslices;
	uint64	   *hashes = palloc_extended(room * sizeof(uint64), MCXT_ALLOC_HUGE);
	int			position = 0;
	CcmTag		tag;

	*count = 0;
	while (ccm_scan_next(&position, min_usage, &tag))
	{
		if (ccm_tag_slice(&tag, filter->nslices) != filter->slice)
			continue;
		if (*count == room)
		{
			room *= 2;
			hashes = repalloc_huge(hashes, room * sizeof(uint64));
		}
		hashes[(*count)++] = ccm_tag_hash(&tag, filter->seed);
	}
	return hashes;
}

/*
 * Build the filter of what is cached here. The seed, the slice and the flags
 * are set by the caller; so many bytes in front of the message are left free.
 */
unsigned char *
ccm_build_filter(CcmFilter *filter, int min_usage, size_t reserve)
{
	uint32		count;
	uint64	   *hashes = collect_hashes(filter, min_usage, &count);
	unsigned char *message;

	ccm_self(&filter->peer);
	filter->reader = ccm_reader_id();
	ccm_filter_size(filter, count);
	message = palloc_extended(reserve + ccm_filter_bytes(filter), MCXT_ALLOC_HUGE);
	ccm_filter_write(filter, message + reserve);
	for (uint32 i = 0; i < count; i++)
		ccm_filter_add(filter, hashes[i]);
	pfree(hashes);
	return message;
}

/*
 * How many buffers may be replaced without a loss: free ones, and those that
 * nobody uses and that the next round of the clock takes.
 */
int64
ccm_count_cold(void)
{
	int64		cold = 0;

	for (int i = 0; i < NBuffers; i++)
	{
		uint32		state = pg_atomic_read_u32(&GetBufferDescriptor(i)->state);

		if ((state & BM_TAG_VALID) == 0 ||
			(BUF_STATE_GET_USAGECOUNT(state) <= 1 && BUF_STATE_GET_REFCOUNT(state) == 0))
			cold++;
	}
	return cold;
}

/*
 * Is this page cached? If it is, raise its usage count to the upstream's. That
 * takes no lock of the relation: nothing is read, and nothing that is dropped
 * meanwhile comes back.
 */
bool
ccm_raise_resident(const CcmTag *tag, bool raise)
{
	BufferTag	wanted;
	BufferDesc *buffer;
	uint32		hash;
	uint32		state;
	int			id;
	bool		is_here;

	make_buffer_tag(tag, &wanted);
	hash = BufTableHashCode(&wanted);
	LWLockAcquire(BufMappingPartitionLock(hash), LW_SHARED);
	id = BufTableLookup(&wanted, hash);
	LWLockRelease(BufMappingPartitionLock(hash));
	if (id < 0)
		return false;

	buffer = GetBufferDescriptor(id);
	state = LockBufHdr(buffer);
	is_here = (state & BM_VALID) != 0 && BufferTagsEqual(&buffer->tag, &wanted);
	if (is_here && raise && BUF_STATE_GET_USAGECOUNT(state) < tag->usage)
		state += (tag->usage - BUF_STATE_GET_USAGECOUNT(state)) * BUF_USAGECOUNT_ONE;
	UnlockBufHdr(buffer, state);
	return is_here;
}

/*
 * Set the usage count of a buffer that nobody has pinned, if it still has the
 * page that we mean.
 */
static bool
set_usage(BufferDesc *buffer, const CcmTag *tag, uint32 usage)
{
	CcmTag		now;
	uint32		state = LockBufHdr(buffer);
	bool		done = false;

	copy_tag(&buffer->tag, &now);
	if (state_matters(state, 0) && BUF_STATE_GET_REFCOUNT(state) == 0 &&
		ccm_tag_equal(&now, tag))
	{
		state = (state & ~BUF_USAGECOUNT_MASK) | usage * BUF_USAGECOUNT_ONE;
		done = true;
	}
	UnlockBufHdr(buffer, state);
	return done;
}

/*
 * Take something off the usage counts of a slice's pages that are not hot on
 * the upstream, as so many rounds of the clock would.
 */
void
ccm_age_slice(const CcmFilter *hot, uint32 rounds)
{
	int			position = 0;
	CcmTag		tag;

	while (ccm_scan_next(&position, 1, &tag))
		if (ccm_tag_slice(&tag, hot->nslices) == hot->slice &&
			!ccm_filter_has(hot, ccm_tag_hash(&tag, hot->seed)))
			set_usage(GetBufferDescriptor(position - 1), &tag,
					  tag.usage - Min(tag.usage, rounds));
}

/*
 * Mirror mode: pages that the upstream has not cached are the next to be
 * replaced. With keep, those that it has stay for another round of the clock.
 * peers are the upstream's filters, one for each slice; one whose map is
 * missing says nothing. Returns how many pages were demoted.
 */
int64
ccm_mirror_slices(CcmFilter *peers, uint32 nslices, bool keep)
{
	int			position = 0;
	int64		demoted = 0;
	CcmTag		tag;

	while (ccm_scan_next(&position, 0, &tag))
	{
		CcmFilter  *peer = &peers[ccm_tag_slice(&tag, nslices)];
		BufferDesc *buffer = GetBufferDescriptor(position - 1);

		if (peer->map == NULL)
			continue;
		if (ccm_filter_has(peer, ccm_tag_hash(&tag, peer->seed)))
		{
			if (keep && tag.usage == 0)
				set_usage(buffer, &tag, 1);
		}
		else if (tag.usage > 0 && set_usage(buffer, &tag, 0))
			demoted++;
	}
	return demoted;
}
