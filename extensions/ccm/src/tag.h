/*-------------------------------------------------------------------------
 *
 * tag.h
 *		The address of a page, and its hash.
 *
 * Nothing here, in filter.c and in wire.c needs PostgreSQL: the two read
 * bytes that come from a network, and test/fuzz.c runs them alone, under
 * AddressSanitizer.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CCM_TAG_H
#define CCM_TAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Everything that two servers tell each other begins with this, so that one
 * of another release is told from one that talks rubbish.
 */
#define CCM_WIRE_VERSION	1

/* The largest usage count and the last fork of PostgreSQL 15 to 18 */
#define CCM_MAX_USAGE		5
#define CCM_MAX_FORK		3

/* The tablespace of what all databases share, and what is no block */
#define CCM_GLOBAL_SPACE	1664
#define CCM_NO_BLOCK		UINT32_C(0xffffffff)

typedef struct CcmTag
{
	uint32_t	db;				/* 0 for what all databases share */
	uint32_t	spc;
	uint32_t	rel;			/* the number of the relation's file */
	uint32_t	block;
	uint8_t		fork;
	uint8_t		usage;			/* the buffer's usage count; no part of the
								 * address */
} CcmTag;

/*
 * Who speaks and whom he takes the other for. What a primary and its standby
 * have in common is checked before anything else of a message is believed.
 */
typedef struct CcmPeer
{
	uint64_t	system;			/* the system identifier of the cluster */
	uint32_t	block_size;
} CcmPeer;

/* What is wrong with a message, or with who sent it */
typedef enum CcmFault
{
	CCM_OK = 0,
	CCM_MALFORMED,
	CCM_OTHER_VERSION,
	CCM_OTHER_SYSTEM,
	CCM_OTHER_BLOCK_SIZE
} CcmFault;

static inline uint64_t
ccm_mix(uint64_t x)
{
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	x ^= x >> 32;
	return x;
}

static inline uint64_t
ccm_tag_hash(const CcmTag *tag, uint64_t seed)
{
	uint64_t	h = ccm_mix(seed ^ ((uint64_t) tag->spc << 32 | tag->db));

	h = ccm_mix(h ^ ((uint64_t) tag->rel << 32 | tag->block));
	return ccm_mix(h + tag->fork + 1);
}

/*
 * Which slice a page belongs to. Neighbours go together: what is read from
 * the disk in the end should still be runs of pages.
 */
#define CCM_SLICE_SHIFT		7

static inline uint32_t
ccm_tag_slice(const CcmTag *tag, uint32_t nslices)
{
	CcmTag		run = *tag;

	if (nslices <= 1)
		return 0;
	run.block >>= CCM_SLICE_SHIFT;
	return (uint32_t) (ccm_tag_hash(&run, UINT64_C(0x43434d)) % nslices);
}

/*
 * Can there be such a relation? PostgreSQL makes a path of the numbers of a
 * database and a tablespace only if they go together.
 */
static inline bool
ccm_tag_possible(const CcmTag *tag)
{
	return tag->rel != 0 && tag->spc != 0 && tag->block != CCM_NO_BLOCK &&
		(tag->db == 0) == (tag->spc == CCM_GLOBAL_SPACE);
}

static inline bool
ccm_tag_equal(const CcmTag *a, const CcmTag *b)
{
	return a->db == b->db && a->spc == b->spc && a->rel == b->rel &&
		a->fork == b->fork && a->block == b->block;
}

/* Numbers on the wire are little-endian wherever they are written. */
static inline void
ccm_put(unsigned char *p, uint64_t value, int bytes)
{
	for (int i = 0; i < bytes; i++)
		p[i] = (unsigned char) (value >> (8 * i));
}

static inline uint64_t
ccm_get(const unsigned char *p, int bytes)
{
	uint64_t	value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t) p[i] << (8 * i);
	return value;
}

#endif							/* CCM_TAG_H */
