/*-------------------------------------------------------------------------
 *
 * log.c
 *		The extension log_fdw: the server's own log files as foreign tables.
 *
 * A table has one option, the name of a file, and one column, its lines. The
 * name is one of those that PostgreSQL gives its log files here; it is checked
 * when the table is made and again when it is read, and is looked for in
 * log_directory alone. So a user who may use the wrapper reads the log of this
 * server, and no other file.
 *
 * No file is open between two calls: a scan may outlive the subtransaction in
 * which it is called, which closes at its end what was opened in it, and the
 * number of the file would then be that of another one.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/reloptions.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "postmaster/syslogger.h"
#include "storage/fd.h"
#include "utils/builtins.h"
#include "utils/rel.h"

/* what the agent has PostgreSQL call its log files: log_filename, and an hour */
static const char file_form[] = "postgresql.log.####-##-##-##";

/* a longer line comes as several rows */
#define MAX_LINE (1024 * 1024)

typedef struct LogScan
{
	const char *name;
	off_t		at;				/* where in the file to read on */
	char		buffer[64 * 1024];
	int			length;			/* of what is in buffer */
	int			taken;			/* of that */
	bool		ended;
	StringInfoData line;
} LogScan;

PG_FUNCTION_INFO_V1(howdah_log_handler);
PG_FUNCTION_INFO_V1(howdah_log_validator);
PG_FUNCTION_INFO_V1(howdah_log_files);

static bool is_log_file(const char *name);
static const char *checked_name(const char *name);
static const char *name_of(Oid table);
static void rel_size(PlannerInfo *root, RelOptInfo *rel, Oid table);
static void paths(PlannerInfo *root, RelOptInfo *rel, Oid table);
static ForeignScan *plan(PlannerInfo *root, RelOptInfo *rel, Oid table,
						 ForeignPath *path, List *tlist, List *clauses,
						 Plan *outer);
static void begin_scan(ForeignScanState *node, int eflags);
static TupleTableSlot *iterate(ForeignScanState *node);
static void rescan(ForeignScanState *node);
static void end_scan(ForeignScanState *node);
static int	open_log(const char *name);
static void go_to_start(LogScan *scan);
static bool next_line(LogScan *scan);
static void fill(LogScan *scan);

Datum
howdah_log_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = rel_size;
	routine->GetForeignPaths = paths;
	routine->GetForeignPlan = plan;
	routine->BeginForeignScan = begin_scan;
	routine->IterateForeignScan = iterate;
	routine->ReScanForeignScan = rescan;
	routine->EndForeignScan = end_scan;
	PG_RETURN_POINTER(routine);
}

/* a table has a filename, and nothing else has an option */
Datum
howdah_log_validator(PG_FUNCTION_ARGS)
{
	List	   *options = untransformRelOptions(PG_GETARG_DATUM(0));
	Oid			catalog = PG_GETARG_OID(1);
	bool		named = false;
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (catalog != ForeignTableRelationId || strcmp(option->defname, "filename") != 0)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("invalid option \"%s\"", option->defname),
					 errhint("A foreign table of log_fdw has the option filename.")));
		(void) checked_name(defGetString(option));
		named = true;
	}
	if (catalog == ForeignTableRelationId && !named)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_DYNAMIC_PARAMETER_VALUE_NEEDED),
				 errmsg("filename is required for foreign tables of log_fdw")));
	PG_RETURN_VOID();
}

/* list_postgres_log_files(): names and sizes */
Datum
howdah_log_files(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;
	DIR		   *dir;
	struct dirent *entry;

	InitMaterializedSRF(fcinfo, 0);
	dir = AllocateDir(Log_directory);
	while ((entry = ReadDir(dir, Log_directory)) != NULL)
	{
		struct stat info;
		Datum		values[2];
		bool		nulls[2] = {false};
		char	   *path = psprintf("%s/%s", Log_directory, entry->d_name);

		if (!is_log_file(entry->d_name) || lstat(path, &info) != 0 ||
			!S_ISREG(info.st_mode))
			continue;
		values[0] = CStringGetTextDatum(entry->d_name);
		values[1] = Int64GetDatum((int64) info.st_size);
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	FreeDir(dir);
	return (Datum) 0;
}

static bool
is_log_file(const char *name)
{
	if (strlen(name) != strlen(file_form))
		return false;
	for (int i = 0; file_form[i] != '\0'; i++)
		if (file_form[i] == '#' ? name[i] < '0' || name[i] > '9' : name[i] != file_form[i])
			return false;
	return true;
}

static const char *
checked_name(const char *name)
{
	if (!is_log_file(name))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("no log file has the name \"%s\"", name),
				 errhint("list_postgres_log_files() has the names.")));
	return name;
}

static const char *
name_of(Oid table)
{
	ListCell   *lc;

	foreach(lc, GetForeignTable(table)->options)
		if (strcmp(lfirst_node(DefElem, lc)->defname, "filename") == 0)
			return checked_name(defGetString(lfirst_node(DefElem, lc)));
	return checked_name("");
}

static void
rel_size(PlannerInfo *root, RelOptInfo *rel, Oid table)
{
	struct stat info;

	rel->rows = 1000;
	if (stat(psprintf("%s/%s", Log_directory, name_of(table)), &info) == 0)
		rel->rows = clamp_row_est(info.st_size / 128.0);
}

static void
paths(PlannerInfo *root, RelOptInfo *rel, Oid table)
{
	add_path(rel, (Path *) create_foreignscan_path(root, rel, NULL, rel->rows,
#if PG_VERSION_NUM >= 180000
												   0,
#endif
												   10, 10 + rel->rows, NIL,
												   rel->lateral_relids, NULL,
#if PG_VERSION_NUM >= 170000
												   NIL,
#endif
												   NIL));
}

static ForeignScan *
plan(PlannerInfo *root, RelOptInfo *rel, Oid table, ForeignPath *path,
	 List *tlist, List *clauses, Plan *outer)
{
	return make_foreignscan(tlist, extract_actual_clauses(clauses, false),
							rel->relid, NIL, NIL, NIL, NIL, outer);
}

static void
begin_scan(ForeignScanState *node, int eflags)
{
	Relation	rel = node->ss.ss_currentRelation;
	LogScan    *scan;

	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;
	if (RelationGetDescr(rel)->natts != 1 ||
		TupleDescAttr(RelationGetDescr(rel), 0)->atttypid != TEXTOID)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
				 errmsg("a foreign table of log_fdw has one column, of type text")));
	scan = palloc0(sizeof(LogScan));
	initStringInfo(&scan->line);
	scan->name = pstrdup(name_of(RelationGetRelid(rel)));
	go_to_start(scan);
	node->fdw_state = scan;
}

static int
open_log(const char *name)
{
	int			fd = OpenTransientFile(psprintf("%s/%s", Log_directory, name),
									   O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	struct stat info;

	if (fd < 0 || fstat(fd, &info) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not open the log file \"%s\": %m", name)));
	if (!S_ISREG(info.st_mode))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is no file", name)));
	return fd;
}

static TupleTableSlot *
iterate(ForeignScanState *node)
{
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	LogScan    *scan = node->fdw_state;
	char	   *line;
	int			length;

	ExecClearTuple(slot);
	CHECK_FOR_INTERRUPTS();
	if (!next_line(scan))
		return slot;
	line = scan->line.data;
	length = scan->line.len;
	while (length > 0 && *line == '\0')	/* the end of a hole */
	{
		line++;
		length--;
	}
	/* lines are in the encodings of several databases */
	if (!pg_verifymbstr(line, length, true))
		for (int i = 0; i < length; i++)
			if (IS_HIGHBIT_SET(line[i]) || line[i] == '\0')
				line[i] = '?';
	slot->tts_values[0] = PointerGetDatum(cstring_to_text_with_len(line, length));
	slot->tts_isnull[0] = false;
	return ExecStoreVirtualTuple(slot);
}

/* read the next line, without its end; false: that was all */
static bool
next_line(LogScan *scan)
{
	resetStringInfo(&scan->line);
	for (;;)
	{
		char	   *from = scan->buffer + scan->taken;
		int			left = scan->length - scan->taken;
		char	   *end = left > 0 ? memchr(from, '\n', left) : NULL;
		int			part = end != NULL ? end - from : left;

		part = Min(part, MAX_LINE - scan->line.len);
		appendBinaryStringInfo(&scan->line, from, part);
		scan->taken += part;
		if (end != NULL && from + part == end)
		{
			scan->taken++;
			return true;
		}
		if (scan->line.len == MAX_LINE)
			return true;
		if (scan->ended)
			return scan->line.len > 0;
		fill(scan);
	}
}

/* read on in the file; where nothing is left, the scan ends */
static void
fill(LogScan *scan)
{
	int			fd = open_log(scan->name);
	ssize_t		length = pread(fd, scan->buffer, sizeof(scan->buffer), scan->at);

	if (length < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read the log file \"%s\": %m", scan->name)));
	CloseTransientFile(fd);
	scan->at += length;
	scan->taken = 0;
	scan->length = length;
	scan->ended = length == 0;
}

static void
rescan(ForeignScanState *node)
{
	go_to_start(node->fdw_state);
}

/* what the agent gave up at the beginning of a file is a hole */
static void
go_to_start(LogScan *scan)
{
	int			fd = open_log(scan->name);

	scan->length = scan->taken = 0;
	scan->ended = false;
	scan->at = lseek(fd, 0, SEEK_DATA);
	if (scan->at < 0)
		scan->at = lseek(fd, 0, SEEK_END);
	if (scan->at < 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read the log file \"%s\": %m", scan->name)));
	CloseTransientFile(fd);
}

static void
end_scan(ForeignScanState *node)
{
	/* nothing is open */
}
