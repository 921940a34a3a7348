/*-------------------------------------------------------------------------
 *
 * topology.c
 *		What drivers ask about a cluster.
 *
 * AWS's drivers ask a cluster's servers which instances there are and which of
 * them writes, by functions that RDS has (drivers.sql). The answers stand on
 * two words of the platform's:
 *
 * - howdah.cluster and howdah.topology are in the server's configuration: what
 *   kind of cluster it belongs to, and who its members are. They change when an
 *   instance comes, goes or moves, not at a failover.
 * - howdah.seen is what the agent of the member saw last: who leads, and when
 *   each member was seen. A standby could not store it in a table, and a file
 *   would have to be trusted, so it is kept in shared memory. A server that
 *   starts has not been told yet.
 *
 * What a server knows by itself, as that it is no standby, the functions take
 * from the server. A word says when it was true, so that an old one is no lie.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/varlena.h"

/* sixteen members, each with its name and a time, take a tenth of it */
#define SEEN_SIZE 8192

/* what a server belongs to */
typedef enum
{
	NO_CLUSTER,
	AURORA,						/* Aurora cluster */
	MULTI_AZ					/* Multi-AZ DB cluster */
} ClusterKind;

static const struct config_enum_entry cluster_kinds[] = {
	{"none", NO_CLUSTER, false},
	{"aurora", AURORA, false},
	{"multi-az", MULTI_AZ, false},
	{NULL, 0, false}
};

typedef struct Seen
{
	LWLock	   *lock;			/* guards text */
	char		text[SEEN_SIZE];	/* JSON, or "" */
} Seen;

static shmem_request_hook_type next_shmem_request;
static shmem_startup_hook_type next_shmem_startup;

static int	cluster_kind = NO_CLUSTER;
static char *topology;
static char *seen_setting;
static char *rds_extensions_setting;
static Seen *seen;

PG_FUNCTION_INFO_V1(howdah_seen);

static void shmem_request(void);
static void shmem_startup(void);
static const char *show_seen(void);
static const char *show_rds_extensions(void);

void
howdah_topology_init(void)
{
	DefineCustomEnumVariable("howdah.cluster",
							 "What kind of cluster the server belongs to.",
							 NULL, &cluster_kind, NO_CLUSTER, cluster_kinds,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("howdah.topology",
							   "The members of the cluster, as JSON.",
							   NULL, &topology, "",
							   PGC_SIGHUP, GUC_SUPERUSER_ONLY,
							   NULL, NULL, NULL);
	DefineCustomStringVariable("howdah.seen",
							   "What the agent saw of the cluster last, as JSON.",
							   "The platform sets it by howdah_seen().",
							   &seen_setting, "",
							   PGC_INTERNAL,
							   GUC_SUPERUSER_ONLY | GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, show_seen);
	DefineCustomStringVariable("rds.extensions",
							   "Extensions that users may create, as RDS shows them.",
							   "It follows howdah.extensions.",
							   &rds_extensions_setting, "",
							   PGC_INTERNAL,
							   GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, show_rds_extensions);
	next_shmem_request = shmem_request_hook;
	shmem_request_hook = shmem_request;
	next_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = shmem_startup;
}

/* does the server belong to a Multi-AZ DB cluster? */
bool
howdah_in_multi_az_cluster(void)
{
	return cluster_kind == MULTI_AZ;
}

static void
shmem_request(void)
{
	if (next_shmem_request)
		next_shmem_request();
	RequestAddinShmemSpace(sizeof(Seen));
	RequestNamedLWLockTranche("howdah seen", 1);
}

static void
shmem_startup(void)
{
	bool		found;

	if (next_shmem_startup)
		next_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	seen = ShmemInitStruct("howdah seen", sizeof(Seen), &found);
	if (!found)
	{
		seen->lock = &GetNamedLWLockTranche("howdah seen")->lock;
		seen->text[0] = '\0';
	}
	LWLockRelease(AddinShmemInitLock);
}

/* the caller copies what it is shown before it asks again */
static const char *
show_seen(void)
{
	static char copy[SEEN_SIZE];

	if (seen == NULL || !IsUnderPostmaster)
		return "";
	LWLockAcquire(seen->lock, LW_SHARED);
	strlcpy(copy, seen->text, sizeof(copy));
	LWLockRelease(seen->lock);
	return copy;
}

/*
 * Drivers look in this list for what tells Aurora's servers from others, and for
 * what a Multi-AZ DB cluster's have. RDS quotes no names.
 */
static const char *
show_rds_extensions(void)
{
	List	   *names;
	StringInfoData list;

	initStringInfo(&list);
	if (SplitIdentifierString(pstrdup(howdah_extensions), ',', &names))
	{
		ListCell   *lc;

		foreach(lc, names)
			appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "",
							 (const char *) lfirst(lc));
		list_free(names);
	}
	if (cluster_kind != NO_CLUSTER)
		appendStringInfo(&list, "%s%s", list.len > 0 ? ", " : "",
						 cluster_kind == AURORA ? "aurora_stat_utils" : "rds_tools");
	return list.data;
}

/* howdah_seen(text): what the agent sees, for the platform alone */
Datum
howdah_seen(PG_FUNCTION_ARGS)
{
	char	   *word = text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to say what was seen of the cluster")));
	if (seen == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("howdah must be loaded via shared_preload_libraries")));
	if (strlen(word) >= SEEN_SIZE)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("what was seen of the cluster takes more than %d bytes", SEEN_SIZE - 1)));
	if (word[0] != '\0')
		(void) DirectFunctionCall1(jsonb_in, CStringGetDatum(word));	/* or it is refused */
	LWLockAcquire(seen->lock, LW_EXCLUSIVE);
	strlcpy(seen->text, word, SEEN_SIZE);
	LWLockRelease(seen->lock);
	PG_RETURN_VOID();
}
