/*-------------------------------------------------------------------------
 *
 * extension_query.c
 *		What the queries of a script find, which runs as a superuser for a user.
 *
 * trust.c lets no function of a user run meanwhile. That is not all that a query
 * can find of a user's:
 *
 * - An operator of a user may name a function of a superuser's. If it takes just
 *   the types that a query has, it is found before PostgreSQL's own, which would
 *   have to convert them: varchar || unknown is no operator of PostgreSQL's. By one
 *   of these, the script of postgis_topology copied a topology of the user's choice.
 * - A view of a user calls functions of PostgreSQL's own with the rights of whoever
 *   reads it: query_to_xml() runs a text. So do defaults and constraints, when a
 *   table is written to.
 *
 * No script needs any of these.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "extension_script.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/analyze.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static post_parse_analyze_hook_type next_post_parse_analyze;

static void post_parse_analyze(ParseState *pstate, Query *query, JumbleState *jumble);
static bool find_operators(Node *node, void *context);
static void check_operator(Oid operator);
static bool is_lifted_script(void);

/* install the hook that sees queries before any of them runs */
void
howdah_extension_query_init(void)
{
	next_post_parse_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = post_parse_analyze;
}

/* refuse that a script reads what runs a user's text, or writes to a user's table */
void
howdah_check_script_relation(Oid relation, bool write)
{
	char		kind = get_rel_relkind(relation);
	HeapTuple	tuple;
	Oid			owner;

	if (!is_lifted_script() ||
		!(write || kind == RELKIND_VIEW || kind == RELKIND_FOREIGN_TABLE))
		return;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relation);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	if (!superuser_arg(owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for %s in the script of an extension",
						get_rel_name(relation)),
				 errdetail("Its owner is not a superuser.")));
}

/* post_parse_analyze_hook: of statements, and of those of functions in them */
static void
post_parse_analyze(ParseState *pstate, Query *query, JumbleState *jumble)
{
	if (next_post_parse_analyze)
		next_post_parse_analyze(pstate, query, jumble);
	if (is_lifted_script())
		(void) find_operators((Node *) query, NULL);
}

/* walker: look at all operators, those of subqueries and of CREATE TABLE AS too */
static bool
find_operators(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
	{
		Node	   *utility = ((Query *) node)->utilityStmt;

		if (utility != NULL && IsA(utility, CreateTableAsStmt))
			(void) find_operators(((CreateTableAsStmt *) utility)->query, context);
		return query_tree_walker((Query *) node, find_operators, context, 0);
	}
	if (IsA(node, RowCompareExpr))
	{
		ListCell   *lc;

		foreach(lc, ((RowCompareExpr *) node)->opnos)
			check_operator(lfirst_oid(lc));
	}
	else if (IsA(node, ScalarArrayOpExpr))
		check_operator(((ScalarArrayOpExpr *) node)->opno);
	else if (IsA(node, OpExpr) || IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
		check_operator(((OpExpr *) node)->opno);
	return expression_tree_walker(node, find_operators, context);
}

/* refuse an operator of a user's */
static void
check_operator(Oid operator)
{
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator));
	Form_pg_operator form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", operator);
	form = (Form_pg_operator) GETSTRUCT(tuple);
	if (!superuser_arg(form->oprowner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("operator %s.%s may not be used in the script of an extension",
						quote_identifier(get_namespace_name(form->oprnamespace)),
						NameStr(form->oprname)),
				 errdetail("Its owner is not a superuser."),
				 errhint("Move it to another schema, or drop it.")));
	ReleaseSysCache(tuple);
}

/* does a script run now that has a superuser's rights by a user's statement? */
static bool
is_lifted_script(void)
{
	return howdah_in_script() && superuser();
}
