/*-------------------------------------------------------------------------
 *
 * cron.c
 *		Roles with jobs of pg_cron.
 *
 * pg_cron keeps who runs a job as a name. Releases before 1.5 end with an error as
 * they read a job of a role that there is no more, start again, and read it
 * again: no job of anybody runs until somebody removes that one. So a role that has
 * jobs is neither dropped nor renamed. That is only known in the database where
 * the jobs are.
 *
 *-------------------------------------------------------------------------
 */
#include "howdah.h"

#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/guc.h"

typedef struct Question
{
	const char *role;
	bool		has_jobs;
} Question;

static void ask(void *arg);

void
howdah_check_no_jobs(const char *role, const char *action)
{
	Question	question = {role, false};

	if (!OidIsValid(get_extension_oid("pg_cron", true)))
		return;
	howdah_run_as_admin(ask, &question);
	if (question.has_jobs)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("role \"%s\" cannot be %s because it has jobs of pg_cron", role, action),
				 errdetail("No job of anybody would run any more."),
				 errhint("As that role, end them: SELECT cron.unschedule(jobid) FROM cron.job.")));
}

/* past the policy of the table, which shows a role its own jobs */
static void
ask(void *arg)
{
	Question   *question = arg;
	Oid			types[] = {TEXTOID};
	Datum		values[] = {CStringGetTextDatum(question->role)};
	int			save_settings = NewGUCNestLevel();

	/* the user's search_path must not choose the query's operators */
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE,
							 true, 0, false);
	SPI_connect();
	if (SPI_execute_with_args("SELECT 1 FROM cron.job WHERE username = $1", 1, types, values,
							  " ", true, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not look for jobs of pg_cron");
	question->has_jobs = SPI_processed > 0;
	SPI_finish();
	AtEOXact_GUC(true, save_settings);
}
