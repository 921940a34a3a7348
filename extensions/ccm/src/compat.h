/*-------------------------------------------------------------------------
 *
 * compat.h
 *		What changed between PostgreSQL 15 and 18. The rest of the module is
 *		written in the newest spelling, and asks for no version.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CCM_COMPAT_H
#define CCM_COMPAT_H

#include "common/string.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "tag.h"

#if PG_VERSION_NUM < 150000
#error "ccm needs PostgreSQL 15 or later"
#endif

/* 19: the state of a buffer has 64 bits, and other locks */
#if PG_VERSION_NUM >= 190000
#error "ccm does not know this PostgreSQL's buffers"
#endif

#if PG_VERSION_NUM < 160000

#include "utils/relfilenodemap.h"

/* 16: RelFileNode became RelFileLocator, with other names for its fields */
typedef RelFileNode RelFileLocator;

#define spcOid spcNode
#define dbOid dbNode
#define relNumber relNode
#define rd_locator rd_node
#define RelidByRelfilenumber(spc, rel) RelidByRelfilenode(spc, rel)

/* 16: and the fields of a buffer's tag came apart */
static inline RelFileLocator
BufTagGetRelFileLocator(const BufferTag *tag)
{
	return tag->rnode;
}

static inline ForkNumber
BufTagGetForkNum(const BufferTag *tag)
{
	return tag->forkNum;
}

static inline void
InitBufferTag(BufferTag *tag, const RelFileLocator *locator, ForkNumber fork,
			  BlockNumber block)
{
	INIT_BUFFERTAG(*tag, *locator, fork, block);
}

static inline bool
BufferTagsEqual(const BufferTag *a, const BufferTag *b)
{
	return BUFFERTAGS_EQUAL(*a, *b);
}

#else

#include "utils/relfilenumbermap.h"

#endif

/* 16: a copy is returned, where the string itself was changed before */
static inline char *
ccm_clean_ascii(char *text)
{
#if PG_VERSION_NUM < 160000
	pg_clean_ascii(text);
	return text;
#else
	return pg_clean_ascii(text, 0);
#endif
}

/* 17: streams of pages that are read ahead of use */
#if PG_VERSION_NUM >= 170000

#include "storage/read_stream.h"

#define CCM_READ_STREAM

/* 17: one more setting that ends a session */
#define CCM_MORE_TIMEOUTS {"transaction_timeout", "0"},

/* 18: the requests of a stream may be handed over together */
#if PG_VERSION_NUM >= 180000
#define CCM_STREAM_FLAGS (READ_STREAM_MAINTENANCE | READ_STREAM_USE_BATCHING)
#else
#define CCM_STREAM_FLAGS READ_STREAM_MAINTENANCE
#endif

#else

#define CCM_MORE_TIMEOUTS

#endif

/* 18: what does not return is said in front */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

#endif							/* CCM_COMPAT_H */
