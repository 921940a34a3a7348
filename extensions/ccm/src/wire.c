/*-------------------------------------------------------------------------
 *
 * wire.c
 *		A list of pages, as the bytes that are sent.
 *
 * After a header the list has groups, one for each fork of a relation:
 *
 *		database, tablespace, relation, fork, how many pages
 *
 * and the pages in ascending order, each as the distance from the one before,
 * less one, and the usage count in the lower three bits. All are numbers of
 * seven bits to the byte, so that a page of a relation that is cached as a
 * whole takes one byte instead of twenty.
 *
 *-------------------------------------------------------------------------
 */
#include "wire.h"

#include <string.h>

#define BLOCKS_MAGIC		UINT32_C(0x424d4343)	/* CCMB */
#define USAGE_BITS			3
#define LAST_BLOCK			UINT64_C(0xfffffffe)	/* MaxBlockNumber */

enum
{
	AT_MAGIC = 0,
	AT_VERSION = 4,
	AT_RESERVED = 6,
	AT_SYSTEM = 8,
	AT_BLOCK_SIZE = 16,
	AT_COUNT = 20
};

/* What is left to read; at is never past end. */
typedef struct Reader
{
	const unsigned char *at;
	const unsigned char *end;
} Reader;

/* The order of the groups and of the pages in them, for qsort */
int
ccm_tag_compare(const void *a, const void *b)
{
	const CcmTag *l = a;
	const CcmTag *r = b;

	if (l->db != r->db)
		return l->db < r->db ? -1 : 1;
	if (l->spc != r->spc)
		return l->spc < r->spc ? -1 : 1;
	if (l->rel != r->rel)
		return l->rel < r->rel ? -1 : 1;
	if (l->fork != r->fork)
		return l->fork < r->fork ? -1 : 1;
	if (l->block != r->block)
		return l->block < r->block ? -1 : 1;
	return 0;
}

static unsigned char *
put_number(unsigned char *at, uint64_t value)
{
	while (value >= 0x80)
	{
		*at++ = (unsigned char) (value | 0x80);
		value >>= 7;
	}
	*at++ = (unsigned char) value;
	return at;
}

/* False at the end, and for what is no number of 64 bits */
static bool
get_number(Reader *in, uint64_t *value)
{
	*value = 0;
	for (int shift = 0; shift < 63 && in->at < in->end; shift += 7)
	{
		unsigned char byte = *in->at++;

		*value |= (uint64_t) (byte & 0x7f) << shift;
		if ((byte & 0x80) == 0)
			return true;
	}
	return false;
}

static bool
get_uint32(Reader *in, uint32_t *value)
{
	uint64_t	number;

	if (!get_number(in, &number) || number > UINT32_MAX)
		return false;
	*value = (uint32_t) number;
	return true;
}

static bool
same_group(const CcmTag *a, const CcmTag *b)
{
	return a->db == b->db && a->spc == b->spc && a->rel == b->rel && a->fork == b->fork;
}

/*
 * Write pages that are in order, none of them twice, into a message that has
 * CCM_BYTES_PER_PAGE for each and the header. Returns its length.
 */
size_t
ccm_blocks_write(unsigned char *message, const CcmTag *tags, uint32_t count,
				 const CcmPeer *self)
{
	unsigned char *at = message + CCM_BLOCKS_HEADER;
	uint32_t	begin = 0;

	memset(message, 0, CCM_BLOCKS_HEADER);
	ccm_put(message + AT_MAGIC, BLOCKS_MAGIC, 4);
	ccm_put(message + AT_VERSION, CCM_WIRE_VERSION, 2);
	ccm_put(message + AT_SYSTEM, self->system, 8);
	ccm_put(message + AT_BLOCK_SIZE, self->block_size, 4);
	ccm_put(message + AT_COUNT, count, 4);
	while (begin < count)
	{
		uint32_t	end = begin + 1;
		uint64_t	next = 0;

		while (end < count && same_group(&tags[begin], &tags[end]))
			end++;
		at = put_number(at, tags[begin].db);
		at = put_number(at, tags[begin].spc);
		at = put_number(at, tags[begin].rel);
		at = put_number(at, tags[begin].fork);
		at = put_number(at, end - begin);
		for (; begin < end; begin++)
		{
			at = put_number(at, (tags[begin].block - next) << USAGE_BITS | tags[begin].usage);
			next = (uint64_t) tags[begin].block + 1;
		}
	}
	return (size_t) (at - message);
}

/* Check the header, and say how many pages it announces. */
CcmFault
ccm_blocks_count(const unsigned char *message, size_t length,
				 const CcmPeer *self, uint32_t *count)
{
	if (length < CCM_BLOCKS_HEADER ||
		ccm_get(message + AT_MAGIC, 4) != BLOCKS_MAGIC)
		return CCM_MALFORMED;
	if (ccm_get(message + AT_VERSION, 2) != CCM_WIRE_VERSION)
		return CCM_OTHER_VERSION;
	if (ccm_get(message + AT_SYSTEM, 8) != self->system)
		return CCM_OTHER_SYSTEM;
	if (ccm_get(message + AT_BLOCK_SIZE, 4) != self->block_size)
		return CCM_OTHER_BLOCK_SIZE;
	*count = (uint32_t) ccm_get(message + AT_COUNT, 4);

	/* A page takes a byte at least: nobody makes us allocate by a lie. */
	if (ccm_get(message + AT_RESERVED, 2) != 0 ||
		*count > length - CCM_BLOCKS_HEADER)
		return CCM_MALFORMED;
	return CCM_OK;
}

/* The pages of a group; tags has room for count */
static bool
read_pages(Reader *in, const CcmTag *group, CcmTag *tags, uint32_t count)
{
	uint64_t	next = 0;

	for (uint32_t i = 0; i < count; i++)
	{
		uint64_t	number;

		if (!get_number(in, &number))
			return false;
		next += number >> USAGE_BITS;
		tags[i] = *group;
		tags[i].usage = (uint8_t) (number & ((1 << USAGE_BITS) - 1));
		if (next > LAST_BLOCK || tags[i].usage > CCM_MAX_USAGE)
			return false;
		tags[i].block = (uint32_t) next++;
	}
	return true;
}

/*
 * Read a list whose header ccm_blocks_count() has checked into tags, which
 * has room for the pages that it announced. They come in the order in which
 * they were sent, which an honest peer's qsort has made.
 */
CcmFault
ccm_blocks_read(const unsigned char *message, size_t length, CcmTag *tags,
				uint32_t count)
{
	Reader		in = {message + CCM_BLOCKS_HEADER, message + length};
	uint32_t	done = 0;

	while (done < count)
	{
		CcmTag		group = {0};
		uint32_t	fork;
		uint32_t	pages;

		if (!get_uint32(&in, &group.db) || !get_uint32(&in, &group.spc) ||
			!get_uint32(&in, &group.rel) || !get_uint32(&in, &fork) ||
			!get_uint32(&in, &pages) || fork > CCM_MAX_FORK ||
			pages == 0 || pages > count - done || !ccm_tag_possible(&group))
			return CCM_MALFORMED;
		group.fork = (uint8_t) fork;
		if (!read_pages(&in, &group, tags + done, pages))
			return CCM_MALFORMED;
		done += pages;
	}
	return in.at == in.end ? CCM_OK : CCM_MALFORMED;
}
