/*-------------------------------------------------------------------------
 *
 * connection.c
 *		Guard of the connection strings that the server connects with.
 *
 * The libpq of PostgreSQL 18, which packages give older servers too, appends
 * the keys of a connection to the file that "sslkeylogfile" names: any file
 * of the operating-system user. PostgreSQL keeps the option from foreign
 * servers, but not from what dblink takes as a text, nor from subscriptions.
 * Users who are not superusers may not give it.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

/* dblink's library, and what of it may connect */
static const char dblink_library[] = "dblink";

static const char *const connecting[] = {
	"dblink_connect", "dblink_connect_u", "dblink_exec", "dblink_record"
};

static void check_text(const char *text);
static char *percent_decoded(const char *text);
static bool is_connecting(HeapTuple proc);
static bool has_library(HeapTuple proc, const char *library);
static char *text_attribute(HeapTuple proc, AttrNumber attribute);

/* guard: see the head of this file */
bool
howdah_guard_connection(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	if (IsA(node, CreateSubscriptionStmt))
		check_text(((CreateSubscriptionStmt *) node)->conninfo);
	else if (IsA(node, AlterSubscriptionStmt))
		check_text(((AlterSubscriptionStmt *) node)->conninfo);
	return false;
}

/* is this a function that takes connection strings? */
bool
howdah_is_connecting(Oid function)
{
	HeapTuple	proc = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		found;

	if (!HeapTupleIsValid(proc))
		elog(ERROR, "cache lookup failed for function %u", function);
	found = is_connecting(proc);
	ReleaseSysCache(proc);
	return found;
}

/* stands in for a function of dblink: looks at its texts before it is called */
Datum
howdah_connect(PG_FUNCTION_ARGS)
{
	HeapTuple	proc = SearchSysCache1(PROCOID,
									   ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
	Form_pg_proc form;
	PGFunction	run;

	if (!HeapTupleIsValid(proc))
		elog(ERROR, "cache lookup failed for function %u",
			 fcinfo->flinfo->fn_oid);
	form = (Form_pg_proc) GETSTRUCT(proc);
	for (int i = 0; i < form->pronargs && i < PG_NARGS(); i++)
		if (form->proargtypes.values[i] == TEXTOID && !PG_ARGISNULL(i) &&
			!superuser())
			check_text(text_to_cstring(PG_GETARG_TEXT_PP(i)));
	run = load_external_function(text_attribute(proc, Anum_pg_proc_probin),
								 text_attribute(proc, Anum_pg_proc_prosrc),
								 true, NULL);
	ReleaseSysCache(proc);
	return run(fcinfo);
}

/* refuse a text, or NULL, with the option in it; a URI may hide it by %73sl... */
static void
check_text(const char *text)
{
	if (text != NULL &&
		(strstr(text, "sslkeylogfile") != NULL ||
		 strstr(percent_decoded(text), "sslkeylogfile") != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to use the connection option \"%s\"",
						"sslkeylogfile"),
				 errdetail("It would write to files of the server.")));
}

static char *
percent_decoded(const char *text)
{
	char	   *decoded = palloc(strlen(text) + 1);
	char	   *end = decoded;

	while (*text != '\0')
	{
		unsigned int byte;

		if (text[0] == '%' && isxdigit((unsigned char) text[1]) &&
			isxdigit((unsigned char) text[2]) &&
			sscanf(text + 1, "%2x", &byte) == 1 && byte != 0)
		{
			*end++ = (char) byte;
			text += 3;
		}
		else
			*end++ = *text++;
	}
	*end = '\0';
	return decoded;
}

static bool
is_connecting(HeapTuple proc)
{
	const char *name;

	if (((Form_pg_proc) GETSTRUCT(proc))->prolang != ClanguageId ||
		!has_library(proc, dblink_library))
		return false;
	name = text_attribute(proc, Anum_pg_proc_prosrc);
	for (int i = 0; i < lengthof(connecting); i++)
		if (strcmp(name, connecting[i]) == 0)
			return true;
	return false;
}

/* is a function of the library of this name, wherever that is? */
static bool
has_library(HeapTuple proc, const char *library)
{
	const char *path = text_attribute(proc, Anum_pg_proc_probin);
	const char *name = path != NULL ? last_dir_separator(path) : NULL;

	if (path == NULL)
		return false;
	name = name != NULL ? name + 1 : path;
	return strncmp(name, library, strlen(library)) == 0 &&
		(name[strlen(library)] == '\0' || name[strlen(library)] == '.');
}

/* a text of a function's row, or NULL */
static char *
text_attribute(HeapTuple proc, AttrNumber attribute)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(PROCOID, proc, attribute, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}
