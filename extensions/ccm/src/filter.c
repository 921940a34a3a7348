/*-------------------------------------------------------------------------
 *
 * filter.c
 *		A Bloom filter of pages, as the bytes that are sent.
 *
 * A standby tells its primary by one of these which pages it has. The filter
 * may take a page for one that it has (one in a hundred), never the other way
 * round. The pages that are mistaken so would stay cold for as long as the
 * filter makes the same mistakes, which is why every scan has a new seed.
 *
 * PostgreSQL's own filter (lib/bloomfilter.c) cannot be sent: its bits are
 * hidden, and it takes nearly twice the room.
 *
 *-------------------------------------------------------------------------
 */
#include "filter.h"

#include <string.h>

#define FILTER_MAGIC		UINT32_C(0x464d4343)	/* CCMF */

/*
 * Bits for each page, in thousandths, and the number of hashes, that make
 * for one mistake in a hundred with the fewest bits.
 */
#define MILLIBITS_PER_PAGE	9585
#define HASHES				7

/* Where the fields of the header are */
enum
{
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_HASHES = 6,
	AT_FLAGS = 7,
	AT_BITS = 8,
	AT_SEED = 16,
	AT_SYSTEM = 24,
	AT_READER = 32,
	AT_SLICE = 40,
	AT_NSLICES = 44,
	AT_BLOCK_SIZE = 48,
	AT_ENTRIES = 52,
	AT_RESERVED = 56
};

/* Choose m and k for so many pages. */
void
ccm_filter_size(CcmFilter *filter, uint32_t entries)
{
	uint64_t	bits = ((uint64_t) entries * MILLIBITS_PER_PAGE + 999) / 1000;

	bits = (bits + 63) / 64 * 64;
	if (bits < 64)
		bits = 64;
	if (bits > CCM_MAX_BITS)
		bits = CCM_MAX_BITS;
	filter->bits = bits;
	filter->hashes = HASHES;
	filter->entries = entries;
}

/* The length of the whole message */
size_t
ccm_filter_bytes(const CcmFilter *filter)
{
	return CCM_FILTER_HEADER + (size_t) ((filter->bits + 63) / 64 * 8);
}

/* Begin an empty filter in a message of ccm_filter_bytes(). */
void
ccm_filter_write(CcmFilter *filter, unsigned char *message)
{
	memset(message, 0, ccm_filter_bytes(filter));
	ccm_put(message + AT_MAGIC, FILTER_MAGIC, 4);
	ccm_put(message + AT_VERSION, CCM_WIRE_VERSION, 2);
	ccm_put(message + AT_HASHES, filter->hashes, 1);
	ccm_put(message + AT_FLAGS, filter->flags, 1);
	ccm_put(message + AT_BITS, filter->bits, 8);
	ccm_put(message + AT_SEED, filter->seed, 8);
	ccm_put(message + AT_SYSTEM, filter->peer.system, 8);
	ccm_put(message + AT_READER, filter->reader, 8);
	ccm_put(message + AT_SLICE, filter->slice, 4);
	ccm_put(message + AT_NSLICES, filter->nslices, 4);
	ccm_put(message + AT_BLOCK_SIZE, filter->peer.block_size, 4);
	ccm_put(message + AT_ENTRIES, filter->entries, 4);
	filter->map = message + CCM_FILTER_HEADER;
}

static void
read_header(CcmFilter *filter, unsigned char *message)
{
	filter->hashes = (uint8_t) ccm_get(message + AT_HASHES, 1);
	filter->flags = (uint8_t) ccm_get(message + AT_FLAGS, 1);
	filter->bits = ccm_get(message + AT_BITS, 8);
	filter->seed = ccm_get(message + AT_SEED, 8);
	filter->peer.system = ccm_get(message + AT_SYSTEM, 8);
	filter->reader = ccm_get(message + AT_READER, 8);
	filter->slice = (uint32_t) ccm_get(message + AT_SLICE, 4);
	filter->nslices = (uint32_t) ccm_get(message + AT_NSLICES, 4);
	filter->peer.block_size = (uint32_t) ccm_get(message + AT_BLOCK_SIZE, 4);
	filter->entries = (uint32_t) ccm_get(message + AT_ENTRIES, 4);
	filter->map = message + CCM_FILTER_HEADER;
}

/*
 * Read a filter that somebody sent. What the header says is checked against
 * the length and against what we are, before a bit is looked at.
 */
CcmFault
ccm_filter_read(CcmFilter *filter, unsigned char *message, size_t length,
				const CcmPeer *self)
{
	if (length < CCM_FILTER_HEADER ||
		ccm_get(message + AT_MAGIC, 4) != FILTER_MAGIC)
		return CCM_MALFORMED;
	if (ccm_get(message + AT_VERSION, 2) != CCM_WIRE_VERSION)
		return CCM_OTHER_VERSION;
	read_header(filter, message);
	if (filter->peer.system != self->system)
		return CCM_OTHER_SYSTEM;
	if (filter->peer.block_size != self->block_size)
		return CCM_OTHER_BLOCK_SIZE;
	if (filter->bits == 0 || filter->bits > CCM_MAX_BITS ||
		filter->hashes == 0 || filter->hashes > CCM_MAX_HASHES ||
		(filter->flags & ~(CCM_WANTS_MIRROR | CCM_WANTS_HOT)) != 0 ||
		filter->nslices == 0 || filter->nslices > CCM_MAX_SLICES ||
		filter->slice >= filter->nslices ||
		ccm_get(message + AT_RESERVED, 8) != 0 ||
		length != ccm_filter_bytes(filter))
		return CCM_MALFORMED;
	return CCM_OK;
}

/*
 * The positions of a page's bits follow from two hashes, one of which is the
 * step; the upper half of the sum, times m, is brought into range by a shift.
 */
static inline uint32_t
position(const CcmFilter *filter, uint64_t h)
{
	return (uint32_t) (((h >> 32) * filter->bits) >> 32);
}

void
ccm_filter_add(CcmFilter *filter, uint64_t hash)
{
	uint64_t	step = ccm_mix(hash) | 1;

	for (int i = 0; i < filter->hashes; i++, hash += step)
	{
		uint32_t	bit = position(filter, hash);

		filter->map[bit / 8] |= (unsigned char) (1 << bit % 8);
	}
}

bool
ccm_filter_has(const CcmFilter *filter, uint64_t hash)
{
	uint64_t	step = ccm_mix(hash) | 1;

	for (int i = 0; i < filter->hashes; i++, hash += step)
	{
		uint32_t	bit = position(filter, hash);

		if ((filter->map[bit / 8] & (1 << bit % 8)) == 0)
			return false;
	}
	return true;
}
