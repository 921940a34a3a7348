/*-------------------------------------------------------------------------
 *
 * fuzz.c
 *		Rubbish for what reads messages: bytes at random, and messages that
 *		were right until some of their bytes were changed. Built with
 *		AddressSanitizer, which ends it at the first byte that is read or
 *		written out of place. Each round's seed follows from its number, so a
 *		failure comes again: fuzz SECONDS [FIRST ROUND].
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "filter.h"
#include "wire.h"

static const CcmPeer self = {UINT64_C(0x1122334455667788), 8192};
static uint64_t state;
static uint64_t round_number;

void		__asan_on_error(void);

/* AddressSanitizer calls it: what to give as the first round. */
void
__asan_on_error(void)
{
	fprintf(stderr, "in round %llu\n", (unsigned long long) round_number);
}

static uint64_t
draw(uint64_t below)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return ccm_mix(state) % below;
}

/* Numbers that are near the edges, more often than not */
static uint32_t
draw_number(void)
{
	static const uint32_t edges[] = {0, 1, 127, 128, 16383, 16384, INT32_MAX, UINT32_MAX - 1, UINT32_MAX};

	return draw(2) ? edges[draw(9)] : (uint32_t) (draw(UINT64_C(1) << 32) >> draw(32));
}

/* Change, cut or lengthen; the message gets the size that it has to the byte. */
static unsigned char *
spoil(unsigned char *message, size_t *length)
{
	size_t		changes = draw(6);
	size_t		wanted = draw(4) ? *length : draw(*length + 20);
	unsigned char *result = malloc(wanted ? wanted : 1);

	for (size_t i = 0; i < wanted; i++)
		result[i] = i < *length ? message[i] : (unsigned char) draw(256);
	for (; wanted > 0 && changes > 0; changes--)
		result[draw(draw(2) ? wanted : wanted < 80 ? wanted : 80)] = (unsigned char) draw(256);
	free(message);
	*length = wanted;
	return result;
}

static unsigned char *
list_of_pages(size_t *length)
{
	uint32_t	count = (uint32_t) draw(200);
	CcmTag	   *tags = calloc(count + 1, sizeof(CcmTag));
	unsigned char *message = malloc(CCM_BLOCKS_HEADER + (size_t) count * CCM_BYTES_PER_PAGE);

	for (uint32_t i = 0; i < count; i++)
	{
		tags[i].db = draw_number();
		tags[i].rel = (uint32_t) draw(3) + 1;
		tags[i].spc = tags[i].db ? draw_number() : CCM_GLOBAL_SPACE;
		tags[i].block = draw_number();
		tags[i].fork = (uint8_t) draw(4);
		tags[i].usage = (uint8_t) draw(6);
	}
	qsort(tags, count, sizeof(CcmTag), ccm_tag_compare);
	*length = ccm_blocks_write(message, tags, count, &self);
	free(tags);
	return message;
}

static int
try_list(void)
{
	size_t		length;
	unsigned char *message = list_of_pages(&length);
	uint32_t	count;
	CcmFault	fault;

	message = spoil(message, &length);
	fault = ccm_blocks_count(message, length, &self, &count);
	if (fault == CCM_OK)
	{
		CcmTag	   *tags = malloc((count ? count : 1) * sizeof(CcmTag));

		fault = ccm_blocks_read(message, length, tags, count);
		for (uint32_t i = 0; fault == CCM_OK && i < count; i++)
			if (tags[i].fork > CCM_MAX_FORK || tags[i].usage > CCM_MAX_USAGE ||
				!ccm_tag_possible(&tags[i]))
				abort();
		free(tags);
	}
	free(message);
	return fault == CCM_OK;
}

static int
try_filter(void)
{
	CcmFilter	filter = {.peer = self,.seed = draw_number(),.nslices = 1};
	size_t		length;
	unsigned char *message;
	CcmFault	fault;

	ccm_filter_size(&filter, (uint32_t) draw(300));
	length = ccm_filter_bytes(&filter);
	message = malloc(length);
	ccm_filter_write(&filter, message);
	message = spoil(message, &length);
	fault = ccm_filter_read(&filter, message, length, &self);
	for (int i = 0; fault == CCM_OK && i < 100; i++)
	{
		ccm_filter_add(&filter, ccm_mix(draw_number()));
		ccm_filter_has(&filter, ccm_mix(draw_number()));
	}
	free(message);
	return fault == CCM_OK;
}

/* No message of ours at all */
static void
try_noise(void)
{
	size_t		length = draw(300);
	unsigned char *message = malloc(length ? length : 1);
	CcmFilter	filter;
	CcmTag		tags[300];
	uint32_t	count = (uint32_t) draw(300);

	for (size_t i = 0; i < length; i++)
		message[i] = (unsigned char) draw(256);
	ccm_filter_read(&filter, message, length, &self);
	if (length >= CCM_BLOCKS_HEADER)
		ccm_blocks_read(message, length, tags, count);
	free(message);
}

int
main(int argc, char **argv)
{
	time_t		end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 5);
	uint64_t	right = 0;

	round_number = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	for (; round_number % 1000 != 0 || time(NULL) < end; round_number++)
	{
		state = round_number << 20;
		right += try_list() + try_filter();
		try_noise();
	}
	printf("ok - %llu rounds of rubbish, %llu messages of which were right\n",
		   (unsigned long long) round_number, (unsigned long long) right);
	return 0;
}
