/*-------------------------------------------------------------------------
 *
 * pace.h
 *		How many pages in a second may be read, so that a disk has as much
 *		room for others as for us.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CCM_PACE_H
#define CCM_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* All zero, it has seen nothing. Times are in microseconds. */
typedef struct CcmPace
{
	double		pages;			/* in a second */
	int64_t		at;				/* when it was judged last */
	int64_t		read;			/* pages, since then */
	int64_t		took;			/* the time in which they were read */
} CcmPace;

extern void ccm_pace_begin(CcmPace *pace, int rate, int64_t now);
extern bool ccm_pace_read(CcmPace *pace, int rate, int64_t pages, int64_t took, int64_t now);

#endif							/* CCM_PACE_H */
