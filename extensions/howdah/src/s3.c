/*-------------------------------------------------------------------------
 *
 * s3.c
 *		Functions of the extension aws_s3: COPY to and from objects in S3.
 *
 * This is COPY with the rights of whoever calls, and nothing is elevated. Its
 * data go to the agent of the host and come from there (agent.c); the agent
 * knows which role the database was given, and what opens the bucket. So SQL
 * names a bucket and a file, which the role may allow, but neither a server
 * nor a key.
 *
 * No superuser calls these functions, the platform least of all: a view of a
 * user's that it reads would take what only the platform may read out of the
 * database.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "agent.h"
#include "catalog/namespace.h"
#include "commands/copy.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "libpq/libpq.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "parser/scansup.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/varlena.h"

/* an export under way: the rows of COPY go to the agent, all else where it went */
typedef struct Export
{
	Agent	   *agent;
	uint64		rows;
	uint64		bytes;
	const PQcommMethods *outer_methods;
	CommandDest outer_dest;
} Export;

static Export *exporting = NULL;

/* an import under way, and what it has taken of the newest frame */
typedef struct Import
{
	Agent	   *agent;
	int			taken;
	bool		ended;
	uint64		rows;
	uint64		bytes;
} Import;

static Import *importing = NULL;

PG_FUNCTION_INFO_V1(howdah_s3_export);
PG_FUNCTION_INFO_V1(howdah_s3_import);

static void check_caller(void);
static const char *text_arg(FunctionCallInfo fcinfo, int n);
static const char *needed_arg(FunctionCallInfo fcinfo, int n, const char *name);
static void ask(Agent *agent, char request, FunctionCallInfo fcinfo, int first);
static RawStmt *parse_query(const char *query);
static List *parse_options(const char *options, bool is_from);
static List *parse_columns(const char *columns);
static void copy_to_agent(Export *export, const char *query, RawStmt *parsed,
						  List *options);
static Relation open_target(const char *name, CopyStmt *stmt, ParseState *pstate);
static void check_target(Relation rel, ParseState *pstate, List *columns);
static void copy_from_agent(Import *import, Relation rel, CopyStmt *stmt,
							ParseState *pstate);
static int	import_source(void *buffer, int least, int most);
static void export_reset(void);
static int	export_flush(void);
static int	export_flush_if_writable(void);
static bool export_is_send_pending(void);
static int	export_putmessage(char kind, const char *content, size_t length);
static void export_putmessage_noblock(char kind, const char *content, size_t length);

static const PQcommMethods export_methods = {
	.comm_reset = export_reset,
	.flush = export_flush,
	.flush_if_writable = export_flush_if_writable,
	.is_send_pending = export_is_send_pending,
	.putmessage = export_putmessage,
	.putmessage_noblock = export_putmessage_noblock,
};

/*
 * howdah_s3_export(query, bucket, file_path, region, options, kms_key): rows,
 * files and bytes that were sent
 */
Datum
howdah_s3_export(PG_FUNCTION_ARGS)
{
	const char *query;
	RawStmt    *parsed;
	List	   *options;
	Export		export = {0};
	Datum		values[3];
	bool		nulls[3] = {false};
	TupleDesc	result;

	check_caller();
	query = needed_arg(fcinfo, 0, "query");
	parsed = parse_query(query);
	options = parse_options(text_arg(fcinfo, 4), false);
	if (text_arg(fcinfo, 5) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a kms_key is not supported"),
				 errhint("The bucket says how it encrypts.")));
	if (exporting != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a query that is exported cannot export")));
	if (get_call_result_type(fcinfo, NULL, &result) != TYPEFUNC_COMPOSITE ||
		result->natts != lengthof(values))
		elog(ERROR, "three columns are needed");
	export.agent = howdah_agent_open();
	PG_TRY();
	{
		ask(export.agent, AGENT_EXPORT, fcinfo, 1);
		copy_to_agent(&export, query, parsed, options);
		howdah_agent_end(export.agent);
		if (howdah_agent_receive(export.agent) != AGENT_END)
			elog(ERROR, "the agent of the host has another protocol");
		export.bytes = strtoull(export.agent->in.data, NULL, 10);
	}
	PG_FINALLY();
	{
		howdah_agent_close(export.agent);
	}
	PG_END_TRY();
	values[0] = Int64GetDatum((int64) export.rows);
	values[1] = Int64GetDatum(1);
	values[2] = Int64GetDatum((int64) export.bytes);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(result),
													  values, nulls)));
}

/*
 * howdah_s3_import(table_name, column_list, options, bucket, file_path, region,
 * access_key, secret_key, session_token): says what was imported
 */
Datum
howdah_s3_import(PG_FUNCTION_ARGS)
{
	CopyStmt   *stmt = makeNode(CopyStmt);
	ParseState *pstate = make_parsestate(NULL);
	Import		import = {0};
	const char *name;
	Relation	rel;

	/* first of all: any other error would have the statement, with a secret, in the log */
	for (int n = 6; n < 9; n++)
		if (text_arg(fcinfo, n) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("credentials are not supported"),
					 errhint("Give the database a role for s3Import."),
					 errhidestmt(true), errhidecontext(true)));
	check_caller();
	name = needed_arg(fcinfo, 0, "table_name");
	stmt->is_from = true;
	stmt->attlist = parse_columns(text_arg(fcinfo, 1));
	stmt->options = parse_options(text_arg(fcinfo, 2), true);
	rel = open_target(name, stmt, pstate);
	import.agent = howdah_agent_open();
	PG_TRY();
	{
		ask(import.agent, AGENT_IMPORT, fcinfo, 3);
		copy_from_agent(&import, rel, stmt, pstate);
	}
	PG_FINALLY();
	{
		howdah_agent_close(import.agent);
	}
	PG_END_TRY();
	table_close(rel, NoLock);
	free_parsestate(pstate);
	CommandCounterIncrement();
	PG_RETURN_TEXT_P(cstring_to_text(psprintf(UINT64_FORMAT " rows imported into relation \"%s\" from file %s of " UINT64_FORMAT " bytes",
											  import.rows, name, needed_arg(fcinfo, 4, "file_path"), import.bytes)));
}

/* see the head of this file */
static void
check_caller(void)
{
	if (superuser() || superuser_arg(GetSessionUserId()) ||
		howdah_role_is_protected(GetSessionUserId()) || howdah_confined() ||
		InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to export or import with the rights of the platform")));
}

/* an argument as text, or NULL; an empty one counts as none */
static const char *
text_arg(FunctionCallInfo fcinfo, int n)
{
	char	   *value;

	if (PG_ARGISNULL(n))
		return NULL;
	value = text_to_cstring(PG_GETARG_TEXT_PP(n));
	return value[0] != '\0' ? value : NULL;
}

static const char *
needed_arg(FunctionCallInfo fcinfo, int n, const char *name)
{
	const char *value = text_arg(fcinfo, n);

	if (value == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be empty", name)));
	return value;
}

/* tell the agent what is wanted: bucket, file_path and region are arguments in a row */
static void
ask(Agent *agent, char request, FunctionCallInfo fcinfo, int first)
{
	const char *words[3];

	words[0] = needed_arg(fcinfo, first, "bucket");
	words[1] = needed_arg(fcinfo, first + 1, "file_path");
	words[2] = text_arg(fcinfo, first + 2);
	howdah_agent_ask(agent, request, lengthof(words), words);
}

/* one query, of a kind that COPY takes */
static RawStmt *
parse_query(const char *query)
{
	List	   *all = raw_parser(query, RAW_PARSE_DEFAULT);
	RawStmt    *only = list_length(all) == 1 ? linitial_node(RawStmt, all) : NULL;

	if (only == NULL ||
		!(IsA(only->stmt, SelectStmt) || IsA(only->stmt, InsertStmt) ||
		  IsA(only->stmt, UpdateStmt) || IsA(only->stmt, DeleteStmt)))
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("the query must be a single SELECT, INSERT, UPDATE or DELETE")));
	return only;
}

/*
 * The options of a COPY: in parentheses, or as RDS takes them without. They are
 * parsed inside of a statement, of which nothing else may come of them.
 */
static List *
parse_options(const char *options, bool is_from)
{
	const char *inside = options;
	const char *form;
	List	   *all;
	CopyStmt   *stmt;

	if (options == NULL)
		return NIL;
	while (scanner_isspace(*inside))
		inside++;
	if (*inside == '\0')
		return NIL;
	if (is_from)
		form = "COPY x FROM STDIN WITH %s";
	else
		form = *inside == '(' ? "COPY x TO STDOUT WITH %s" : "COPY x TO STDOUT WITH (%s)";
	all = raw_parser(psprintf(form, options), RAW_PARSE_DEFAULT);
	if (list_length(all) != 1 || !IsA(linitial_node(RawStmt, all)->stmt, CopyStmt))
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("these are no options of COPY: %s", options)));
	stmt = (CopyStmt *) linitial_node(RawStmt, all)->stmt;
	if (stmt->is_from != is_from || stmt->filename != NULL || stmt->is_program ||
		stmt->query != NULL || stmt->attlist != NIL || stmt->whereClause != NULL ||
		stmt->relation == NULL || stmt->relation->schemaname != NULL ||
		strcmp(stmt->relation->relname, "x") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("these are no options of COPY: %s", options)));
	return stmt->options;
}

/* names between commas, as String nodes; none means all columns */
static List *
parse_columns(const char *columns)
{
	List	   *names;
	List	   *nodes = NIL;
	ListCell   *lc;

	if (columns == NULL)
		return NIL;
	if (!SplitIdentifierString(pstrdup(columns), ',', &names))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("this is no list of columns: %s", columns)));
	foreach(lc, names)
		nodes = lappend(nodes, makeString(pstrdup(lfirst(lc))));
	return nodes;
}

/*
 * Run COPY ... TO STDOUT, whose rows go to the agent: what COPY sends to a client
 * it sends by PqCommMethods, as a parallel worker does. Whatever else is sent
 * meanwhile, such as a notice, goes on its way. SPI would refuse such a COPY.
 *
 * It is a command of its own, as SPI has those of volatile functions: it sees
 * what was written before it, and what it writes is seen by the next one.
 */
static void
copy_to_agent(Export *export, const char *query, RawStmt *parsed, List *options)
{
	ParseState *pstate = make_parsestate(NULL);
	CopyToState copy;

	pstate->p_sourcetext = query;
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	export->outer_methods = PqCommMethods;
	export->outer_dest = whereToSendOutput;
	exporting = export;
	PqCommMethods = &export_methods;
	whereToSendOutput = DestRemote;
	PG_TRY();
	{
		copy = BeginCopyTo(pstate, NULL, parsed, InvalidOid, NULL, false,
#if PG_VERSION_NUM >= 160000
						   NULL,
#endif
						   NIL, options);
		export->rows = DoCopyTo(copy);
		EndCopyTo(copy);
	}
	PG_FINALLY();
	{
		PqCommMethods = export->outer_methods;
		whereToSendOutput = export->outer_dest;
		exporting = NULL;
	}
	PG_END_TRY();
	PopActiveSnapshot();
	CommandCounterIncrement();
	free_parsestate(pstate);
}

static int
export_putmessage(char kind, const char *content, size_t length)
{
	switch (kind)
	{
		case 'd':				/* a row, or a header */
			howdah_agent_send(exporting->agent, content, length);
			return 0;
		case 'H':				/* COPY begins */
		case 'c':				/* and is done */
			return 0;
		default:
			if (exporting->outer_dest != DestRemote)
				return 0;
			return exporting->outer_methods->putmessage(kind, content, length);
	}
}

static void
export_putmessage_noblock(char kind, const char *content, size_t length)
{
	if (exporting->outer_dest == DestRemote)
		exporting->outer_methods->putmessage_noblock(kind, content, length);
}

static void
export_reset(void)
{
	exporting->outer_methods->comm_reset();
}

static int
export_flush(void)
{
	return exporting->outer_dest == DestRemote ? exporting->outer_methods->flush() : 0;
}

static int
export_flush_if_writable(void)
{
	return exporting->outer_dest == DestRemote ?
		exporting->outer_methods->flush_if_writable() : 0;
}

static bool
export_is_send_pending(void)
{
	return exporting->outer_dest == DestRemote &&
		exporting->outer_methods->is_send_pending();
}

/* run COPY ... FROM, whose data come from the agent */
static void
copy_from_agent(Import *import, Relation rel, CopyStmt *stmt, ParseState *pstate)
{
	Import	   *outer = importing;
	CopyFromState copy;

	importing = import;
	PG_TRY();
	{
		copy = BeginCopyFrom(pstate, rel, NULL, NULL, false, import_source,
							 stmt->attlist, stmt->options);
		import->rows = CopyFrom(copy);
		EndCopyFrom(copy);
	}
	PG_FINALLY();
	{
		importing = outer;
	}
	PG_END_TRY();
}

/* the table, after all that COPY would have checked, and our own guards of COPY */
static Relation
open_target(const char *name, CopyStmt *stmt, ParseState *pstate)
{
	PlannedStmt *planned = makeNode(PlannedStmt);
	UtilityCall call = {.pstmt = planned};
	Relation	rel;

	stmt->relation = makeRangeVarFromNameList(textToQualifiedNameList(cstring_to_text(name)));
	planned->commandType = CMD_UTILITY;
	planned->utilityStmt = (Node *) stmt;
	howdah_storage_utility(&call);
	(void) howdah_guard_catalog(&call);
	rel = table_openrv(stmt->relation, RowExclusiveLock);
	check_target(rel, pstate, stmt->attlist);
	if (XactReadOnly && !rel->rd_islocaltemp)
		PreventCommandIfReadOnly("COPY FROM");
	PreventCommandIfParallelMode("COPY FROM");
	return rel;
}

/* may the user insert there? as DoCopy() finds out */
static void
check_target(Relation rel, ParseState *pstate, List *columns)
{
	ParseNamespaceItem *item = addRangeTableEntryForRelation(pstate, rel,
															 RowExclusiveLock,
															 NULL, false, false);
	Bitmapset  *inserted = NULL;
	ListCell   *lc;

	foreach(lc, CopyGetAttnums(RelationGetDescr(rel), rel, columns))
		inserted = bms_add_member(inserted,
								  lfirst_int(lc) - FirstLowInvalidHeapAttributeNumber);
#if PG_VERSION_NUM >= 160000
	item->p_perminfo->requiredPerms = ACL_INSERT;
	item->p_perminfo->insertedCols = inserted;
	ExecCheckPermissions(pstate->p_rtable, list_make1(item->p_perminfo), true);
#else
	item->p_rte->requiredPerms = ACL_INSERT;
	item->p_rte->insertedCols = inserted;
	ExecCheckRTPerms(pstate->p_rtable, true);
#endif
	if (check_enable_rls(RelationGetRelid(rel), InvalidOid, false) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("COPY FROM not supported with row-level security"),
				 errhint("Use INSERT statements instead.")));
}

/* what COPY reads: up to most bytes, and no fewer than least unless that is all */
static int
import_source(void *buffer, int least, int most)
{
	Import	   *import = importing;
	int			got = 0;

	while (got < least && !import->ended)
	{
		StringInfo	in = &import->agent->in;
		int			part = Min(in->len - import->taken, most - got);

		if (part == 0)
		{
			char		kind = howdah_agent_receive(import->agent);

			import->taken = 0;
			if (kind == AGENT_END)
				import->ended = true;
			else if (kind != AGENT_DATA)
				elog(ERROR, "the agent of the host has another protocol");
			continue;
		}
		memcpy((char *) buffer + got, in->data + import->taken, part);
		import->taken += part;
		import->bytes += part;
		got += part;
	}
	return got;
}
