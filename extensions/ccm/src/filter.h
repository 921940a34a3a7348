/*-------------------------------------------------------------------------
 *
 * filter.h
 *		A Bloom filter of pages, as the bytes that are sent.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CCM_FILTER_H
#define CCM_FILTER_H

#include "tag.h"

#define CCM_FILTER_HEADER	64
#define CCM_MAX_HASHES		16
#define CCM_MAX_SLICES		65536

/* The bits' positions are 32-bit numbers. */
#define CCM_MAX_BITS		UINT64_C(0xffffffc0)

/* flags: the answer should have a filter of the upstream's with it, of all
 * that it has cached, or of what is hot there */
#define CCM_WANTS_MIRROR	0x01
#define CCM_WANTS_HOT		0x02

typedef struct CcmFilter
{
	CcmPeer		peer;
	uint64_t	reader;			/* who asks: one reader is served at a time */
	uint64_t	seed;
	uint64_t	bits;			/* m: how many there are */
	uint32_t	entries;		/* how many pages were added; for people */
	uint32_t	slice;
	uint32_t	nslices;
	uint8_t		hashes;			/* k */
	uint8_t		flags;
	unsigned char *map;			/* within the message; bit i is in byte i / 8 */
} CcmFilter;

extern void ccm_filter_size(CcmFilter *filter, uint32_t entries);
extern size_t ccm_filter_bytes(const CcmFilter *filter);
extern void ccm_filter_write(CcmFilter *filter, unsigned char *message);
extern CcmFault ccm_filter_read(CcmFilter *filter, unsigned char *message,
								size_t length, const CcmPeer *self);
extern void ccm_filter_add(CcmFilter *filter, uint64_t hash);
extern bool ccm_filter_has(const CcmFilter *filter, uint64_t hash);

#endif							/* CCM_FILTER_H */
