/*-------------------------------------------------------------------------
 *
 * properties.c
 *		What a filter promises: it forgets nothing, it is wrong about one page
 *		in a hundred, and with another seed about other ones; and that a list
 *		of pages comes back as it was sent.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
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
	printf("ok - properties of filters and lists\n");
	return 0;
}
