/*-------------------------------------------------------------------------
 *
 * connection.c
 *		Guard of the connection strings that the server connects with.
 *
 * Some of libpq's options name files of the operating-system user. The libpq
 * of PostgreSQL 18, which packages give older servers too, appends the keys of
 * a connection to the file that "sslkeylogfile" names. "sslkey" and "sslcert"
 * would log in by the certificate of the server itself, and "passfile" and
 * "servicefile" read passwords and connections from any file. PostgreSQL keeps
 * some of them from foreign servers, but not all, and none from what dblink
 * takes as a text, nor from subscriptions. Users who are not superusers may not
 * give them.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "foreign/foreign.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/syscache.h"

/* dblink's library, and what of it may connect */
static const char dblink_library[] = "dblink";

static const char *const connecting[] = {
	"dblink_connect", "dblink_connect_u", "dblink_exec", "dblink_record"
};

static const char *const file_options[] = {
	"passfile", "servicefile", "sslcert", "sslkey", "sslkeylogfile"
};

/*
 * Options of MySQL's servers. Others name files (mysql_default_file, ssl_key), or
 * are a statement: with "LOAD DATA LOCAL" as init_command, the client library
 * sends whatever file the other end asks for.
 */
static const char *const mysql_options[] = {
	"host", "port", "secure_auth", "reconnect", "use_remote_estimate",
	"fetch_size", "character_set", "truncatable"
};

static void check_text(const char *text);
static void check_server(const char *wrapper, List *options);
static const char *wrapper_of(const char *server);
static void check_options(List *options);
static void refuse_option(const char *option);
static bool gives_option(const char *text, const char *option);
static char *percent_decoded(const char *text);
static bool is_connecting(HeapTuple proc);

/* guard: see the head of this file */
bool
howdah_guard_connection(UtilityCall *call)
{
	Node	   *node = call->pstmt->utilityStmt;

	if (IsA(node, CreateSubscriptionStmt))
		check_text(((CreateSubscriptionStmt *) node)->conninfo);
	else if (IsA(node, AlterSubscriptionStmt))
		check_text(((AlterSubscriptionStmt *) node)->conninfo);
	else if (IsA(node, CreateForeignServerStmt))
		check_server(((CreateForeignServerStmt *) node)->fdwname,
					 ((CreateForeignServerStmt *) node)->options);
	else if (IsA(node, AlterForeignServerStmt))
		check_server(wrapper_of(((AlterForeignServerStmt *) node)->servername),
					 ((AlterForeignServerStmt *) node)->options);
	else if (IsA(node, CreateUserMappingStmt))
		check_options(((CreateUserMappingStmt *) node)->options);
	else if (IsA(node, AlterUserMappingStmt))
		check_options(((AlterUserMappingStmt *) node)->options);
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
	run = load_external_function(howdah_function_text(proc, Anum_pg_proc_probin),
								 howdah_function_text(proc, Anum_pg_proc_prosrc),
								 true, NULL);
	ReleaseSysCache(proc);
	return run(fcinfo);
}

/* refuse a text, or NULL, with such an option in it; a URI may hide it by %73sl... */
static void
check_text(const char *text)
{
	if (text == NULL)
		return;
	for (int i = 0; i < lengthof(file_options); i++)
		if (gives_option(text, file_options[i]) ||
			gives_option(percent_decoded(text), file_options[i]))
			refuse_option(file_options[i]);
}

/* refuse such options, and of a server of MySQL all that are not known to be safe */
static void
check_server(const char *wrapper, List *options)
{
	ListCell   *lc;

	check_options(options);
	if (wrapper == NULL || strcmp(wrapper, "mysql_fdw") != 0)
		return;
	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);
		bool		known = option->defaction == DEFELEM_DROP;

		for (int i = 0; i < lengthof(mysql_options); i++)
			known = known || strcmp(option->defname, mysql_options[i]) == 0;
		if (!known)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("permission denied to use the option \"%s\" of mysql_fdw",
							option->defname),
					 errdetail("It could have files of the server read, or sent.")));
	}
}

/* name of the wrapper of a server; NULL if there is no such server, which PostgreSQL will say */
static const char *
wrapper_of(const char *server)
{
	ForeignServer *found = GetForeignServerByName(server, true);

	return found != NULL ? GetForeignDataWrapper(found->fdwid)->fdwname : NULL;
}

/* refuse such options of foreign servers and user mappings; taking one off is no harm */
static void
check_options(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		for (int i = 0; i < lengthof(file_options); i++)
			if (strcmp(option->defname, file_options[i]) == 0 &&
				option->defaction != DEFELEM_DROP)
				refuse_option(file_options[i]);
	}
}

static void
refuse_option(const char *option)
{
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("permission denied to use the connection option \"%s\"", option),
			 errdetail("It names a file of the server.")));
}

/* is the option's name in the text, with a value? "sslcertmode=" is another one */
static bool
gives_option(const char *text, const char *option)
{
	while ((text = strstr(text, option)) != NULL)
	{
		text += strlen(option);
		if (text[strspn(text, " \t\n\r\f\v")] == '=')
			return true;
	}
	return false;
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
		strcmp(howdah_function_library(proc), dblink_library) != 0)
		return false;
	name = howdah_function_text(proc, Anum_pg_proc_prosrc);
	for (int i = 0; i < lengthof(connecting); i++)
		if (strcmp(name, connecting[i]) == 0)
			return true;
	return false;
}

/* the library of a C function, without its directory and ".so" */
char *
howdah_function_library(HeapTuple proc)
{
	char	   *path = howdah_function_text(proc, Anum_pg_proc_probin);
	char	   *name;

	if (path == NULL)
		return pstrdup("");
	name = last_dir_separator(path) != NULL ? last_dir_separator(path) + 1 : path;
	if (strstr(name, ".so") != NULL)
		*strstr(name, ".so") = '\0';
	return name;
}

/* a text of a function's row, or NULL */
char *
howdah_function_text(HeapTuple proc, AttrNumber attribute)
{
	bool		isnull;
	Datum		value = SysCacheGetAttr(PROCOID, proc, attribute, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}
