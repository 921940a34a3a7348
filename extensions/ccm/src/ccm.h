/*-------------------------------------------------------------------------
 *
 * ccm.h
 *		Cluster cache management: what the files of the module share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef CCM_H
#define CCM_H

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/lwlock.h"

#include "compat.h"
#include "filter.h"
#include "pace.h"
#include "tag.h"
#include "wire.h"

/* How long a scan's numbers count as those of a cluster that has CCM on, and
 * how long a reader that is away keeps its place: longer than ccm.interval is */
#define CCM_READER_GONE_MS		120000
#define CCM_READER_HELD_MS		75000

/* From this ccm.interval on the reader's session ends with each scan. */
#define CCM_STAY_MS				5000
/* Below, the session says by this option that it is to stay. */
#define CCM_STAY_OPTION			"idle_session_timeout=0"

#define CCM_MINUTE				60	/* seconds of the last minute's numbers */
#define CCM_TEXT				256

/* What the worker of a standby is doing */
typedef enum CcmState
{
	CCM_STATE_OFF = 0,			/* ccm.enabled is off */
	CCM_STATE_CONNECTING,
	CCM_STATE_SCANNING,			/* asks the upstream */
	CCM_STATE_READING,			/* reads pages */
	CCM_STATE_WAITING,			/* until the next scan */
	CCM_STATE_PAUSED,			/* see the reason */
	CCM_STATE_HELD,				/* by ccm.debug_hold */
	CCM_STATE_ERROR				/* see the error; it tries again */
} CcmState;

/* Why it does not get on; each is one line in the log */
typedef enum CcmCause
{
	CCM_CAUSE_NONE = 0,
	CCM_CAUSE_LAG,				/* replay is behind */
	CCM_CAUSE_NOT_STREAMING,	/* how far replay is behind is not known */
	CCM_CAUSE_COLD,				/* what is hot does not fit in */
	CCM_CAUSE_CONNECTION,
	CCM_CAUSE_NO_EXTENSION,
	CCM_CAUSE_RIGHTS,
	CCM_CAUSE_SYSTEM,
	CCM_CAUSE_BLOCK_SIZE,
	CCM_CAUSE_VERSION,
	CCM_CAUSE_OTHER_READER,
	CCM_CAUSE_MALFORMED,
	CCM_CAUSE_DISABLED,
	CCM_CAUSE_WORKERS,
	CCM_CAUSE_OTHER,
	CCM_NCAUSES
} CcmCause;

/* What was sent and found in one second */
typedef struct CcmSecond
{
	int64		second;
	int64		sent;
	int64		found;
} CcmSecond;

/* The side that is asked. All is guarded by the lock. */
typedef struct CcmServer
{
	uint64		reader;			/* whom we serve; 0: nobody */
	int			reader_pid;		/* the backend in which it asks */
	TimestampTz last_pull;
	char		reader_address[CCM_TEXT];
	TimestampTz refused_at[CCM_NCAUSES];	/* when it was logged last */
	int64		scans;
	int64		sent_last_scan;
	int64		found_last_scan;
	int64		sent_scan;
	int64		found_scan;
	int64		visited;		/* buffers, in the current scan */
	CcmSecond	seconds[CCM_MINUTE];
} CcmServer;

/* The numbers of one scan of the side that asks */
typedef struct CcmScan
{
	int64		found;			/* hot on the upstream */
	int64		received;		/* of these, not in our filter */
	int64		hit;			/* of these, here after all */
	int64		read;
	int64		skipped;		/* gone, locked, or not replayed yet */
	int64		held_back;		/* there was no cold buffer to put them in */
	int64		demoted;		/* by mirror mode */
	int64		errors;
} CcmScan;

/* The side that asks. All is guarded by the lock. */
typedef struct CcmReader
{
	CcmState	state;
	CcmCause	paused;
	CcmCause	error;
	int			pid;			/* of the worker; 0: none runs */
	int64		scans;
	TimestampTz last_scan_at;
	int64		last_scan_us;
	bool		last_was_long;	/* it took longer than ccm.interval */
	CcmScan		last;
	CcmScan		total;
	int64		cold;			/* buffers that may be replaced */
	int64		lag;			/* bytes of WAL that replay is behind */
	TimestampTz error_at;
	char		error_text[CCM_TEXT];
	char		upstream[CCM_TEXT];
} CcmReader;

/* A database or relation that failed is left alone for so long. */
#define CCM_BAD_DATABASE_MS		30000
#define CCM_BAD_STORAGE_MS		300000
#define CCM_BAD_RELATION_MS		3600000

/* A relation that could not be read, or with rel 0 a whole database */
typedef struct CcmBad
{
	uint32		db;
	uint32		spc;
	uint32		rel;
	TimestampTz until;
} CcmBad;

#define CCM_NBAD				32

typedef struct CcmShared
{
	LWLock	   *lock;
	CcmServer	server;
	CcmReader	reader;
	CcmBad		bad[CCM_NBAD];
} CcmShared;

extern CcmShared *ccm_shared;

/* settings, ccm.c */
extern bool ccm_enabled;
extern int	ccm_interval;
extern int	ccm_rate;
extern int	ccm_batch;
extern int	ccm_min_usage;
extern int	ccm_keep_usage;
extern bool ccm_bump_usage;
extern bool ccm_mirror;
extern int	ccm_max_replay_lag;
extern int	ccm_slice_buffers;
extern char *ccm_upstream_conninfo;
extern char *ccm_database;
extern bool ccm_debug_hold;

/* scan.c: the buffers of this server */
extern void ccm_self(CcmPeer *self);
extern uint64 ccm_reader_id(void);
extern bool ccm_scan_next(int *position, int min_usage, CcmTag *tag);
extern unsigned char *ccm_build_filter(CcmFilter *filter, int min_usage, size_t reserve);
extern int64 ccm_count_cold(void);
extern bool ccm_raise_resident(const CcmTag *tag, bool raise);
extern void ccm_age_slice(const CcmFilter *hot, uint32 rounds);
extern int64 ccm_mirror_slices(CcmFilter *peers, uint32 nslices, bool keep);

/* client.c: the connection to the upstream */
typedef struct CcmPulled
{
	void	   *result;			/* a PGresult, which has the bytes */
	const unsigned char *blocks;
	size_t		blocks_length;
	int			next;			/* -1: that was all */
	int64		found;
	const unsigned char *mirror;	/* NULL: none was sent */
	size_t		mirror_length;
} CcmPulled;

extern bool ccm_connected(void);
extern void ccm_disconnect(void);
extern void ccm_connect(void);
extern void ccm_pull_from_upstream(const unsigned char *filter, size_t length,
								   const CcmFilter *header, int max, int start,
								   CcmPulled *pulled);
extern void ccm_pulled_free(CcmPulled *pulled);

/* report.c: what the worker tells about itself */
extern void ccm_set_state(CcmState state, CcmCause paused);
extern void ccm_report_off(void);
pg_noreturn extern void ccm_fail(CcmCause cause, const char *format,...) pg_attribute_printf(2, 3);
extern void ccm_report_failure(CcmCause cause, const char *text);
extern void ccm_report_scan(const CcmScan *scan, int64 us, bool is_long);
extern CcmCause ccm_cause_of_error(int sqlerrcode);
extern int	ccm_code_of_cause(CcmCause cause);
extern const char *ccm_cause_name(CcmCause cause);

/* worker.c, read.c, warm.c */
extern void ccm_register_worker(void);
extern bool ccm_go_on(void);
extern void ccm_read_pages(CcmTag *tags, uint32 count, uint32 slices_left, CcmScan *scan);
extern void ccm_abandon_job(void);
extern bool ccm_is_bad(const CcmTag *tag);
extern void ccm_mark_bad(const CcmTag *tag);
extern void ccm_mark_database_bad(uint32 database, int ms);

/*
 * What the worker hands to the short-lived workers that read, one for each
 * database, in a segment of shared memory. The numbers come back in it.
 */
typedef struct CcmJob
{
	Oid			database;
	uint32		begin;			/* of tags, for this database */
	uint32		end;
	int			rate;
	int			batch;
	CcmPace		pace;			/* the worker's, while there is one */
	bool		bump;
	pg_atomic_uint32 stop;		/* set by the leader */
	pg_atomic_uint32 connected; /* the worker is in its database */
	pg_atomic_uint32 done;		/* it came to its end, and was not ended */
	pg_atomic_uint64 progress;	/* steps of the worker's; the leader looks
								 * whether it gets on */
	pg_atomic_uint64 read;
	pg_atomic_uint64 hit;
	pg_atomic_uint64 skipped;
	pg_atomic_uint64 errors;
	CcmTag		tags[FLEXIBLE_ARRAY_MEMBER];
} CcmJob;

#endif							/* CCM_H */
