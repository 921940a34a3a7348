/*-------------------------------------------------------------------------
 *
 * argument.c
 *		Arguments that would end the server.
 *
 * A few functions of extensions take the server down with them, and with it
 * all sessions, when they are called with values that their authors did not
 * think of. What is called so by a user fails instead. The rest of such a
 * function, and of its extension, is of use to everybody.
 *
 * The functions are known by their library and by their name in it, whatever
 * SQL calls them, and whenever the extension was created. odd/odd_values.pl
 * finds them. Superusers may call them as they like, but not as SECURITY DEFINER
 * functions, which are the superuser's for whoever calls.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

typedef enum Rule
{
	NOBODY,						/* users do not call it at all */
	NO_NULL,					/* no argument is NULL */
	WITHIN,						/* that integer is from 0 to the limit */
	AT_MOST,					/* that integer is at most the limit */
	SHORT,						/* texts have at most so many bytes */
	NOT_EMPTY,					/* no text is empty */
	NOT_LOWEST,					/* no integer is the lowest one, which has no positive */
	FIRST_NOT_EMPTY,			/* the first text is not empty */
	FINITE,						/* that geometry has no coordinate that is NaN or infinite */
	FLAT,						/* arrays have one dimension, and no NULL */
} Rule;

/* names that end in a star stand for all that begin so */
typedef struct Guarded
{
	const char *library;
	const char *symbol;
	Rule		rule;
	int			argument;		/* its number, from 0 on */
	int			limit;
} Guarded;

static const Guarded guarded[] = {
	/* it works on tables of the session's with a superuser's rights */
	{"orafce", "dbms_alert_*", NOBODY},
	/* it waits for as long as that many characters take, and hears of no cancel */
	{"orafce", "dbms_random_string", AT_MOST, 1, 1000000},
	/* it has an array of 100 cursors, and uses any number as an index */
	{"orafce", "dbms_sql_*", WITHIN, 0, 99},
	{"orafce", "orafce_reminder_*", NO_NULL},
	{"orafce", "plvstr_rvrs", NOT_LOWEST},
	/* files of the server, for whoever writes to utl_file_dir: members of pg_write_all_data do */
	{"orafce", "utl_file_*", NOBODY},
	{"pg_similarity", "soundex*", NOT_EMPTY},
	/* they stumble over what is in a graph */
	{"libpgrouting-*", "_pgr_alphashape", NOBODY},
	{"libpgrouting-*", "_pgr_biconnectedcomponents", NOBODY},
	{"libpgrouting-*", "_pgr_chinesepostman", NOBODY},
	{"libpgrouting-*", "_pgr_lengauertarjandominatortree", NOBODY},
	{"libpgrouting-*", "_pgr_stoerwagner", NOBODY},
	{"libpgrouting-*", "*", NO_NULL},
	/* it calls itself for each point of a line, also of those that it adds, until the stack ends */
	{"postgis-3", "ST_FrechetDistance", NOBODY},
	{"postgis-3", "LWGEOM_asGeoJson", AT_MOST, 1, 100},
	{"postgis-3", "geography_as_geojson", AT_MOST, 1, 100},
	{"postgis-3", "ST_AsGeoJsonRow", AT_MOST, 2, 100},
	/* the one copies them into ten bytes, the other reads them anew for each of their bytes */
	{"postgis-3", "ST_RelateMatch", SHORT, 0, 9},
	{"postgis-3", "relate_pattern", SHORT, 0, 9},
	{"postgis-3", "ST_Voronoi", FINITE, 1},
	{"postgis-3", "geography_as_gml", FIRST_NOT_EMPTY},
	/* for those who work on PostGIS */
	{"postgis-3", "_postgis_gserialized_index_extent", NOBODY},
	{"postgis_topology-3", "GetFaceContainingPoint", NO_NULL},
	{"postgis_raster-3", "RASTER_nMapAlgebra*", FLAT},
	/* not with NaN, not with 0, nor with what comes to that */
	{"postgis_raster-3", "RASTER_setGeotransform", NOBODY},
};

/* a function of these that this session has called */
typedef struct Called
{
	Oid			function;		/* key */
	const Guarded *guarded;
	PGFunction	run;
	bool		definer;		/* runs as its owner, who is a superuser */
	int			nargs;
	Oid			types[FUNC_MAX_ARGS];
} Called;

static HTAB *called = NULL;

static const Guarded *find(HeapTuple proc);
static bool fits(const char *name, const char *pattern);
static Called *look_up(Oid function);
static void check(const Called *call, FunctionCallInfo fcinfo);
static bool is_in_order(const Called *call, FunctionCallInfo fcinfo, int i);
static bool is_finite(struct varlena *geometry);
static bool is_flat(ArrayType *array);

/* is this a function with arguments that would end the server? */
bool
howdah_guards_arguments(Oid function)
{
	HeapTuple	proc = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	bool		found;

	if (!HeapTupleIsValid(proc))
		elog(ERROR, "cache lookup failed for function %u", function);
	found = find(proc) != NULL;
	ReleaseSysCache(proc);
	return found;
}

/* stands in for such a function: looks at its arguments before it is called */
Datum
howdah_call_guarded(PG_FUNCTION_ARGS)
{
	Called	   *call = look_up(fcinfo->flinfo->fn_oid);

	if (!superuser() || call->definer)
		check(call, fcinfo);
	return call->run(fcinfo);
}

static const Guarded *
find(HeapTuple proc)
{
	const char *symbol;
	const char *library;

	if (((Form_pg_proc) GETSTRUCT(proc))->prolang != ClanguageId)
		return NULL;
	symbol = howdah_function_text(proc, Anum_pg_proc_prosrc);
	library = howdah_function_library(proc);
	for (int i = 0; i < lengthof(guarded); i++)
		if (fits(symbol, guarded[i].symbol) &&
			fits(library, guarded[i].library))
			return &guarded[i];
	return NULL;
}

/* is it that name, or one of those that a star stands for? */
static bool
fits(const char *name, const char *pattern)
{
	size_t		length = strlen(pattern);

	if (length > 0 && pattern[length - 1] == '*')
		return strncmp(name, pattern, length - 1) == 0;
	return strcmp(name, pattern) == 0;
}

static Called *
look_up(Oid function)
{
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(Called)};
	HeapTuple	proc;
	Form_pg_proc form;
	Called		found = {.function = function};
	Called	   *entry;

	if (called == NULL)
		called = hash_create("functions whose arguments are looked at", 32,
							 &control, HASH_ELEM | HASH_BLOBS);
	entry = hash_search(called, &function, HASH_FIND, NULL);
	if (entry != NULL)
		return entry;
	proc = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(proc))
		elog(ERROR, "cache lookup failed for function %u", function);
	form = (Form_pg_proc) GETSTRUCT(proc);
	found.guarded = find(proc);
	if (found.guarded == NULL)
		elog(ERROR, "function %u has changed", function);
	found.run = load_external_function(howdah_function_text(proc, Anum_pg_proc_probin),
									   howdah_function_text(proc, Anum_pg_proc_prosrc),
									   true, NULL);
	found.definer = form->prosecdef;
	found.nargs = form->pronargs;
	memcpy(found.types, form->proargtypes.values, form->pronargs * sizeof(Oid));
	ReleaseSysCache(proc);
	entry = hash_search(called, &function, HASH_ENTER, NULL);
	*entry = found;
	return entry;
}

static void
check(const Called *call, FunctionCallInfo fcinfo)
{
	if (call->guarded->rule == NOBODY)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s", get_func_name(call->function)),
				 errdetail("It could end the server, or touch its files.")));
	for (int i = 0; i < call->nargs && i < PG_NARGS(); i++)
		if (!is_in_order(call, fcinfo, i))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid argument %d of function %s", i + 1,
							get_func_name(call->function)),
					 errdetail("It could end the server.")));
}

static bool
is_in_order(const Called *call, FunctionCallInfo fcinfo, int i)
{
	Oid			type = call->types[i];

	int			limit = call->guarded->limit;

	if (PG_ARGISNULL(i))
		return call->guarded->rule != NO_NULL;
	switch (call->guarded->rule)
	{
		case WITHIN:
			return i != call->guarded->argument ||
				(PG_GETARG_INT32(i) >= 0 && PG_GETARG_INT32(i) <= limit);
		case AT_MOST:
			return i != call->guarded->argument || PG_GETARG_INT32(i) <= limit;
		case SHORT:
			return type != TEXTOID || VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(i)) <= limit;
		case NOT_EMPTY:
			return type != TEXTOID || VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(i)) > 0;
		case NOT_LOWEST:
			return type != INT4OID || PG_GETARG_INT32(i) != PG_INT32_MIN;
		case FIRST_NOT_EMPTY:
			for (int j = 0; j < i; j++)
				if (call->types[j] == TEXTOID)
					return true;
			return type != TEXTOID || VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(i)) > 0;
		case FINITE:
			return i != call->guarded->argument ||
				is_finite(PG_DETOAST_DATUM(PG_GETARG_DATUM(i)));
		case FLAT:
			return !OidIsValid(get_element_type(type)) || is_flat(PG_GETARG_ARRAYTYPE_P(i));
		default:
			return true;
	}
}

/*
 * Has a geometry no coordinate that is NaN or infinite? Coordinates are in words of
 * eight bytes, and no other word in one looks like such a number, but for a box of NaN.
 */
static bool
is_finite(struct varlena *geometry)
{
	for (size_t i = 8; i + 8 <= VARSIZE(geometry); i += 8)
	{
		double		number;

		memcpy(&number, (char *) geometry + i, 8);
		if (!isfinite(number))
			return false;
	}
	return true;
}

/* has an array one dimension at most, and no NULL? */
static bool
is_flat(ArrayType *array)
{
	return ARR_NDIM(array) <= 1 && !array_contains_nulls(array);
}
