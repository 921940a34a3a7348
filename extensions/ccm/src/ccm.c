/*-------------------------------------------------------------------------
 *
 * ccm.c
 *		Cluster cache management: a standby keeps in its buffers what its
 *		primary has in its own, so that a failover meets a warm cache.
 *
 * The standby asks. Its worker sends a Bloom filter of the pages that it has
 * (filter.c) to ccm.pull() on the primary, an ordinary SQL function, which
 * answers with the hot pages that are missing (serve.c, wire.c). A page is
 * hot if its buffer's usage count says so. The worker (worker.c) has them read
 * by short-lived workers (read.c, warm.c), one for each database, since a
 * relation can only be locked from within its database.
 *
 * The primary has no process of its own for this, and no port. Whatever a
 * standby does or does not, all that a primary feels is that function.
 *
 * This file has the settings and the start.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#include "ccm.h"
#include "serve.h"

PG_MODULE_MAGIC;

CcmShared  *ccm_shared = NULL;

bool		ccm_enabled = false;
int			ccm_interval = 10000;
int			ccm_rate = 8000;
int			ccm_batch = 1000;
int			ccm_min_usage = 3;
int			ccm_keep_usage = 3;
bool		ccm_bump_usage = true;
bool		ccm_mirror = false;
int			ccm_max_replay_lag = 64 * 1024 * 1024;
int			ccm_slice_buffers = 1024 * 1024;
char	   *ccm_upstream_conninfo = NULL;
char	   *ccm_database = NULL;
bool		ccm_debug_hold = false;

static shmem_request_hook_type prev_shmem_request = NULL;
static shmem_startup_hook_type prev_shmem_startup = NULL;

PGDLLEXPORT void _PG_init(void);

/* All settings are the operator's: no session changes them. */
static void
define_bool(const char *name, const char *description, bool *variable, int flags)
{
	DefineCustomBoolVariable(name, description, NULL, variable, *variable,
							 PGC_SIGHUP, flags, NULL, NULL, NULL);
}

static void
define_int(const char *name, const char *description, int *variable, int min,
		   int max, int flags)
{
	DefineCustomIntVariable(name, description, NULL, variable, *variable,
							min, max, PGC_SIGHUP, flags, NULL, NULL, NULL);
}

static void
define_settings(void)
{
	define_bool("ccm.enabled",
				"Keeps a standby's buffers like its upstream's, and lets a standby ask this server.",
				&ccm_enabled, 0);
	/* Longer, and ccm.status() would take the reader for gone. */
	define_int("ccm.interval", "How long a standby waits between two scans.",
			   &ccm_interval, 100, 60000, GUC_UNIT_MS);
	define_int("ccm.rate", "How many pages a standby reads in a second at most; 0 for no limit.",
			   &ccm_rate, 0, INT_MAX, 0);
	define_int("ccm.batch", "How many pages are read under one lock of their relation at most.",
			   &ccm_batch, 1, 100000, 0);
	define_int("ccm.min_usage", "The usage count from which a buffer of the upstream is hot.",
			   &ccm_min_usage, 0, CCM_MAX_USAGE, 0);
	define_int("ccm.keep_usage", "The usage count from which a standby takes a page for one that it has.",
			   &ccm_keep_usage, 0, CCM_MAX_USAGE, 0);
	define_bool("ccm.bump_usage", "Gives hot pages the upstream's usage count.",
				&ccm_bump_usage, 0);
	define_bool("ccm.mirror", "Has pages replaced first that the upstream has not cached.",
				&ccm_mirror, 0);
	define_int("ccm.max_replay_lag", "How far replay may be behind before a standby stops reading; 0 for any.",
			   &ccm_max_replay_lag, 0, INT_MAX, GUC_UNIT_BYTE);
	define_int("ccm.slice_buffers", "How many buffers one request is about.",
			   &ccm_slice_buffers, 16, 16 * 1024 * 1024, 0);
	define_bool("ccm.debug_hold", "Holds a scan between the upstream's answer and the reading; for tests.",
				&ccm_debug_hold, GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | GUC_DISALLOW_IN_AUTO_FILE);

	/* It may have a password in it. */
	DefineCustomStringVariable("ccm.upstream_conninfo",
							   "How a standby connects to its upstream; empty for primary_conninfo.",
							   NULL, &ccm_upstream_conninfo, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY, NULL, NULL, NULL);
	DefineCustomStringVariable("ccm.database",
							   "The database in which the extension is on the upstream.",
							   NULL, &ccm_database, "postgres",
							   PGC_SIGHUP, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("ccm");
}

static void
request_shared_memory(void)
{
	if (prev_shmem_request)
		prev_shmem_request();
	RequestAddinShmemSpace(MAXALIGN(sizeof(CcmShared)));
	RequestNamedLWLockTranche("ccm", 1);
}

static void
start_shared_memory(void)
{
	bool		found;

	if (prev_shmem_startup)
		prev_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	ccm_shared = ShmemInitStruct("ccm", sizeof(CcmShared), &found);
	if (!found)
	{
		memset(ccm_shared, 0, sizeof(CcmShared));
		ccm_shared->lock = &GetNamedLWLockTranche("ccm")->lock;
	}
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	/*
	 * A session that loads the library by calling a function finds it without
	 * shared memory, and is told what is missing.
	 */
	if (!process_shared_preload_libraries_in_progress)
		return;
	define_settings();
	prev_shmem_request = shmem_request_hook;
	shmem_request_hook = request_shared_memory;
	prev_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = start_shared_memory;
	ccm_install_log_filter();
	ccm_register_worker();
}
