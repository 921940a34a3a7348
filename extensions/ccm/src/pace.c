/*-------------------------------------------------------------------------
 *
 * pace.c
 *		How many pages in a second may be read, so that a disk has as much
 *		room for others as for us.
 *
 * What waits for the disk behind our reads may be the startup process, or the
 * WAL receiver, for which the commits of the primary wait: it writes parts of
 * pages, and what is not cached of them has to be read first. A disk that
 * serves only so many reads in a second lets everybody wait once these are
 * taken. So the reads themselves say how much may be read: if they take more
 * than half of the time, the pace is half of what was read in that time, but
 * not less than half of what it was: a single stall says little. From there on
 * it grows slowly, and tries again what the disk can do.
 *
 *-------------------------------------------------------------------------
 */
#include "pace.h"

/* So many pages are judged together, as a single one may wait for anything. */
#define JUDGED		32

/* What the reads may take of the time, and how much the pace grows in a second */
#define SHARE		0.5
#define GROWTH		0.05

/* So many pages in a second are always read, if the rate is not lower. */
#define SLOWEST		16

#define SECOND		1e6

static void
grow(CcmPace *pace, int rate, int64_t now)
{
	double		seconds = now > pace->at ? (now - pace->at) / SECOND : 0;

	pace->pages *= 1 + GROWTH * seconds;
	if (pace->pages > rate)
		pace->pages = rate;
	pace->at = now;
}

/* Reading begins, for the first time or again. The rate is above zero. */
void
ccm_pace_begin(CcmPace *pace, int rate, int64_t now)
{
	if (pace->pages <= 0)
		pace->pages = rate;
	grow(pace, rate, now);
	pace->read = pace->took = 0;
}

/* Pages were read, in a time. Returns true if the disk had a hard time. */
bool
ccm_pace_read(CcmPace *pace, int rate, int64_t pages, int64_t took, int64_t now)
{
	double		most;
	double		least;

	pace->read += pages;
	pace->took += took;
	if (pace->read < JUDGED)
		return false;
	/* A clock that went back is no reason to divide by zero. */
	most = pace->took > 0 ? SHARE * pace->read * SECOND / pace->took : rate;
	pace->read = pace->took = 0;
	if (most >= pace->pages)
	{
		grow(pace, rate, now);
		return false;
	}
	pace->at = now;
	least = rate < SLOWEST ? rate : SLOWEST;
	if (least < pace->pages / 2)
		least = pace->pages / 2;
	pace->pages = most > least ? most : least;
	return true;
}
