/*-------------------------------------------------------------------------
 *
 * properties.c
 *		What a filter promises: it forgets nothing, it is wrong about one page
 *		in a hundred, and with another seed about other ones; that a list of
 *		pages comes back as it was sent; and that reading keeps a pace which
 *		leaves room on a disk.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "pace.h"
#include "wire.h"

#define CHECK(condition) \
	((condition) ? (void) 0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), exit(1)))

static const CcmPeer self = {UINT64_C(0x1122334455667788), 8192};

/* Neighbours of a few relations, as they are in a cache */
static CcmTag
page(uint32_t i)
{
	CcmTag		tag = {.db = 5,.spc = 1663,.rel = 16384 + i % 7,.block = i / 7,.usage = i % 6};

	return tag;
}

static CcmFilter
filter_of(uint32_t pages, uint64_t seed, unsigned char **message)
{
	CcmFilter	filter = {.peer = self,.seed = seed,.nslices = 1};

	ccm_filter_size(&filter, pages);
	*message = malloc(ccm_filter_bytes(&filter));
	ccm_filter_write(&filter, *message);
	for (uint32_t i = 0; i < pages; i++)
	{
		CcmTag		tag = page(i);

		ccm_filter_add(&filter, ccm_tag_hash(&tag, seed));
	}
	CHECK(ccm_filter_read(&filter, *message, ccm_filter_bytes(&filter), &self) == CCM_OK);
	return filter;
}

static bool
has(const CcmFilter *filter, uint32_t i)
{
	CcmTag		tag = page(i);

	return ccm_filter_has(filter, ccm_tag_hash(&tag, filter->seed));
}

static void
test_filter(uint32_t pages)
{
	unsigned char *one_message;
	unsigned char *two_message;
	CcmFilter	one = filter_of(pages, 1, &one_message);
	CcmFilter	two = filter_of(pages, 2, &two_message);
	uint32_t	wrong = 0;
	uint32_t	both = 0;
	uint32_t	probes = pages < 100000 ? 100000 : pages;

	for (uint32_t i = 0; i < pages; i++)
		CHECK(has(&one, i) && has(&two, i));
	for (uint32_t i = pages; i < pages + probes; i++)
	{
		wrong += has(&one, i);
		both += has(&one, i) && has(&two, i);
	}
	printf("# %u pages: %zu bytes, wrong about %.3f %%, with two seeds %.4f %%\n",
		   pages, ccm_filter_bytes(&one), 100.0 * wrong / probes, 100.0 * both / probes);
	CHECK(wrong >= probes * 0.005 && wrong <= probes * 0.015);
	CHECK(both <= probes * 0.0005);
	free(one_message);
	free(two_message);
}

/* Every page is in one slice; neighbours are in the same. */
static void
test_slices(void)
{
	uint32_t	count[8] = {0};

	for (uint32_t i = 0; i < 1000000; i++)
	{
		CcmTag		tag = page(i);

		CHECK(ccm_tag_slice(&tag, 1) == 0);
		CHECK(ccm_tag_slice(&tag, 8) < 8);
		count[ccm_tag_slice(&tag, 8)]++;
	}
	for (int i = 0; i < 8; i++)
		CHECK(count[i] > 100000 && count[i] < 150000);
}

static void
test_list(uint32_t pages)
{
	CcmTag	   *tags = calloc(pages + 1, sizeof(CcmTag));
	CcmTag	   *back = calloc(pages + 1, sizeof(CcmTag));
	unsigned char *message = malloc(CCM_BLOCKS_HEADER + (size_t) (pages + 1) * CCM_BYTES_PER_PAGE);
	uint32_t	count;
	size_t		length;

	for (uint32_t i = 0; i < pages; i++)
		tags[i] = page(i * 3);
	/* the largest numbers that there are */
	tags[pages] = (CcmTag) {.db = UINT32_MAX,.spc = UINT32_MAX,.rel = UINT32_MAX,
			.block = UINT32_MAX - 1,.fork = CCM_MAX_FORK,.usage = CCM_MAX_USAGE};
	qsort(tags, pages + 1, sizeof(CcmTag), ccm_tag_compare);
	length = ccm_blocks_write(message, tags, pages + 1, &self);
	CHECK(length <= CCM_BLOCKS_HEADER + (size_t) (pages + 1) * CCM_BYTES_PER_PAGE);
	CHECK(ccm_blocks_count(message, length, &self, &count) == CCM_OK && count == pages + 1);
	CHECK(ccm_blocks_read(message, length, back, count) == CCM_OK);
	for (uint32_t i = 0; i < count; i++)
		CHECK(ccm_tag_equal(&tags[i], &back[i]) && tags[i].usage == back[i].usage);
	printf("# %u pages in %zu bytes\n", count, length);
	free(tags);
	free(back);
	free(message);
}

/* Addresses that no page has do not come through. */
static void
test_impossible(void)
{
	static const struct
	{
		CcmTag		tag;
		CcmFault	fault;
	}			cases[] = {
		{{.db = 5,.spc = 1663,.rel = 1}, CCM_OK},
		{{.db = 0,.spc = CCM_GLOBAL_SPACE,.rel = 1}, CCM_OK},
		{{.db = 5,.spc = CCM_GLOBAL_SPACE,.rel = 1}, CCM_MALFORMED},
		{{.db = 0,.spc = 1663,.rel = 1}, CCM_MALFORMED},
		{{.db = 5,.spc = 1663,.rel = 0}, CCM_MALFORMED},
		{{.db = 5,.spc = 0,.rel = 1}, CCM_MALFORMED},
		{{.db = 5,.spc = 1663,.rel = 1,.block = CCM_NO_BLOCK}, CCM_MALFORMED},
	};
	unsigned char message[CCM_BLOCKS_HEADER + CCM_BYTES_PER_PAGE];
	CcmTag		back;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		size_t		length = ccm_blocks_write(message, &cases[i].tag, 1, &self);

		CHECK(ccm_blocks_read(message, length, &back, 1) == cases[i].fault);
		CHECK(ccm_tag_possible(&cases[i].tag) == (cases[i].fault == CCM_OK));
	}
}

/* Each lie about the header is found, and gets its own name. */
static void
test_lies(void)
{
	static const struct
	{
		int			at;
		int			bytes;
		uint64_t	value;
		CcmFault	fault;
	}			lies[] = {
		{0, 4, 1, CCM_MALFORMED}, {4, 2, 2, CCM_OTHER_VERSION},
		{6, 1, 0, CCM_MALFORMED}, {6, 1, 17, CCM_MALFORMED}, {7, 1, 4, CCM_MALFORMED},
		{8, 8, 0, CCM_MALFORMED}, {8, 8, 64, CCM_MALFORMED}, {8, 8, UINT64_MAX, CCM_MALFORMED},
		{8, 8, UINT64_MAX - 62, CCM_MALFORMED}, {24, 8, 1, CCM_OTHER_SYSTEM},
		{40, 4, 1, CCM_MALFORMED}, {44, 4, 0, CCM_MALFORMED}, {44, 4, UINT32_MAX, CCM_MALFORMED},
		{48, 4, 4096, CCM_OTHER_BLOCK_SIZE}, {56, 8, 1, CCM_MALFORMED},
	};
	unsigned char *message;
	CcmFilter	filter = filter_of(1000, 1, &message);
	size_t		length = ccm_filter_bytes(&filter);

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
	{
		unsigned char *copy = malloc(length);

		memcpy(copy, message, length);
		ccm_put(copy + lies[i].at, lies[i].value, lies[i].bytes);
		CHECK(ccm_filter_read(&filter, copy, length, &self) == lies[i].fault);
		free(copy);
	}
	CHECK(ccm_filter_read(&filter, message, length - 1, &self) == CCM_MALFORMED);
	CHECK(ccm_filter_read(&filter, message, 0, &self) == CCM_MALFORMED);
	free(message);
}

/*
 * A disk that serves so many pages in a tenth of a second as fast as they come,
 * and the others in the next one: so do the limits of control groups, and those
 * of volumes in a cloud. Others take a share of it.
 */
typedef struct Disk
{
	double		pages;			/* in a second */
	double		others;			/* of these */
	int64_t		slice;
	double		left;			/* in the slice */
} Disk;

#define SLICE	100000

static int64_t
disk_read(Disk *disk, int64_t now, int64_t pages)
{
	int64_t		began = now;

	for (; pages > 0; pages--)
	{
		if (now / SLICE != disk->slice)
		{
			disk->slice = now / SLICE;
			disk->left = (disk->pages - disk->others) / 10;
		}
		if (disk->left < 1)
			now = (disk->slice + 1) * SLICE;
		else
		{
			disk->left--;
			now += 50;
		}
	}
	return now - began;
}

/* Reads for so many seconds as the worker does; returns the pages of a second, and slices that were
 * taken to the last page. */
static double
read_for(CcmPace *pace, Disk *disk, int rate, int64_t *now, int seconds, double *full)
{
	int64_t		end = *now + seconds * INT64_C(1000000);
	int64_t		due = *now;
	int64_t		all = 0;
	int64_t		taken = 0;

	ccm_pace_begin(pace, rate, *now);
	while (*now < end)
	{
		int64_t		batch = pace->pages / 10 > 1 ? pace->pages / 10 : 1;
		int64_t		took = disk_read(disk, *now, batch);

		*now += took;
		taken += took > SLICE / 2;
		all += batch;
		if (ccm_pace_read(pace, rate, batch, took, *now))
			due = *now;
		due = (due > *now - 1000000 ? due : *now - 1000000) + batch * 1000000 / pace->pages;
		if (*now < due)
			*now = due;
	}
	*full = (double) taken / (seconds * 10);
	return (double) all / seconds;
}

static void
test_pace(void)
{
	CcmPace		pace = {0};
	Disk		disk = {.pages = 3000};
	int64_t		now = INT64_C(800000000000000);
	double		full;
	double		read = read_for(&pace, &disk, 8000, &now, 60, &full);

	/* It takes half to all of what the disk has, and seldom all of it. */
	CHECK(read > 1200 && read < 2600 && full < 0.02);

	/* Others come: their share is left to them, too. */
	disk.others = 2500;
	read = read_for(&pace, &disk, 8000, &now, 60, &full);
	CHECK(read > 200 && read < 450 && full < 0.05);

	/* A fast disk is read at the rate, and soon again after it was slow. */
	disk = (Disk) {.pages = 1e6};
	read_for(&pace, &disk, 8000, &now, 120, &full);
	CHECK(pace.pages > 7900 && full == 0);

	/* One stall halves the pace. A disk that stands still is asked for little. */
	read = pace.pages;
	CHECK(ccm_pace_read(&pace, 8000, 32, INT64_C(60000000), now));
	CHECK(pace.pages == read / 2);
	for (int i = 0; i < 20; i++)
		ccm_pace_read(&pace, 8000, 32, INT64_C(60000000), now);
	CHECK(pace.pages == 16);
	CHECK(!ccm_pace_read(&pace, 8000, 32, 0, now) && !ccm_pace_read(&pace, 8000, 32, -5, now - 5));
	CHECK(pace.pages >= 16 && pace.pages < 17);

	/* One page that waits says nothing. */
	pace = (CcmPace) {0};
	ccm_pace_begin(&pace, 8000, now);
	CHECK(!ccm_pace_read(&pace, 8000, 1, 90000, now) && pace.pages == 8000);

	/* The rate counts at once. */
	ccm_pace_begin(&pace, 100, now);
	CHECK(pace.pages == 100);
}

int
main(void)
{
	test_filter(1000);
	test_filter(100000);
	test_filter(1000000);
	test_slices();
	test_list(0);
	test_list(100000);
	test_impossible();
	test_lies();
	test_pace();
	printf("ok - properties of filters, lists and the pace\n");
	return 0;
}
