/*-------------------------------------------------------------------------
 *
 * wire.h
 *		A list of pages, as the bytes that are sent.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CCM_WIRE_H
#define CCM_WIRE_H

#include "tag.h"

#define CCM_BLOCKS_HEADER	24

/* The most that one page can take: a group of its own */
#define CCM_BYTES_PER_PAGE	32

extern int	ccm_tag_compare(const void *a, const void *b);
extern size_t ccm_blocks_write(unsigned char *message, const CcmTag *tags,
							   uint32_t count, const CcmPeer *self);
extern CcmFault ccm_blocks_count(const unsigned char *message, size_t length,
								 const CcmPeer *self, uint32_t *count);
extern CcmFault ccm_blocks_read(const unsigned char *message, size_t length,
								CcmTag *tags, uint32_t count);

#endif							/* CCM_WIRE_H */
