package param

import "slices"

// libraryParameters are those of libraries that may be installed long after the parameters of a
// version were read. The versions of a library differ in a few more, which groups cannot set.
var libraryParameters = map[string][]Parameter{
	"pg_cron": {
		{Name: "cron.database_name", Type: "string", Context: "postmaster", Default: "postgres", Text: "The database that pg_cron is created in."},
		{Name: "cron.log_run", Type: "bool", Context: "postmaster", Default: "on", Text: "Records all runs of jobs in cron.job_run_details."},
		{Name: "cron.log_statement", Type: "bool", Context: "postmaster", Default: "on", Text: "Logs all statements of jobs before they run."},
		{Name: "cron.max_running_jobs", Type: "integer", Min: "0", Max: "100", Context: "postmaster", Default: "5", Text: "How many jobs run at the same time."},
	},
	"pg_qualstats": {
		{Name: "pg_qualstats.enabled", Type: "bool", Context: "user", Default: "on", Text: "Counts conditions."},
		{Name: "pg_qualstats.max", Type: "integer", Min: "100", Max: "2147483647", Context: "postmaster", Default: "1000", Text: "How many conditions are counted."},
		{Name: "pg_qualstats.sample_rate", Type: "real", Min: "-1", Max: "1", Context: "user", Default: "-1", Text: "The part of statements that is looked at; -1: one of max_connections."},
		{Name: "pg_qualstats.track_constants", Type: "bool", Context: "user", Default: "on", Text: "Counts conditions with different constants apart."},
		{Name: "pg_qualstats.track_pg_catalog", Type: "bool", Context: "user", Default: "off", Text: "Counts conditions on system catalogs, too."},
	},
	"pg_wait_sampling": {
		{Name: "pg_wait_sampling.history_period", Type: "integer", Min: "1", Max: "2147483647", Context: "superuser", Default: "10", Text: "How long after a sample of the history the next one is taken, in milliseconds."},
		{Name: "pg_wait_sampling.history_size", Type: "integer", Min: "100", Max: "2147483647", Context: "superuser", Default: "5000", Text: "How many samples the history has."},
		{Name: "pg_wait_sampling.profile_period", Type: "integer", Min: "1", Max: "2147483647", Context: "superuser", Default: "10", Text: "How long after a sample of the profile the next one is taken, in milliseconds."},
		{Name: "pg_wait_sampling.profile_pid", Type: "bool", Context: "superuser", Default: "on", Text: "Counts each process by itself."},
		{Name: "pg_wait_sampling.profile_queries", Type: "bool", Context: "superuser", Default: "on", Text: "Counts each statement by itself."},
	},
	"pgaudit": {
		{Name: "pgaudit.log", Type: "string", Context: "superuser", Default: "none", Text: "Which classes of statements are logged: read, write, function, role, ddl, misc, misc_set, all, none, with a minus to leave one out."},
		{Name: "pgaudit.log_catalog", Type: "bool", Context: "superuser", Default: "on", Text: "Logs statements on system catalogs alone, too."},
		{Name: "pgaudit.log_client", Type: "bool", Context: "superuser", Default: "off", Text: "Shows the entries of the log to clients, too."},
		{Name: "pgaudit.log_level", Type: "string", Context: "superuser", Default: "log", Text: "The level of the entries."},
		{Name: "pgaudit.log_parameter", Type: "bool", Context: "superuser", Default: "off", Text: "Logs the parameters of statements, too."},
		{Name: "pgaudit.log_relation", Type: "bool", Context: "superuser", Default: "off", Text: "Logs each relation of a statement by itself."},
		{Name: "pgaudit.log_rows", Type: "bool", Context: "superuser", Default: "off", Text: "Logs how many rows a statement had."},
		{Name: "pgaudit.log_statement", Type: "bool", Context: "superuser", Default: "on", Text: "Logs the text of statements, too."},
		{Name: "pgaudit.log_statement_once", Type: "bool", Context: "superuser", Default: "off", Text: "Logs the text of a statement with its first entry alone."},
		{Name: "pgaudit.role", Type: "string", Context: "superuser", Text: "The role whose privileges say what is logged of objects."},
	},
}

// ofLibraries returns the parameters of the libraries that are installed, but for those that were
// read.
func (c Catalogue) ofLibraries() []Parameter {
	var all []Parameter
	for _, library := range c.Libraries {
		for _, p := range libraryParameters[library] {
			if !slices.ContainsFunc(c.Parameters, func(read Parameter) bool { return read.Name == p.Name }) {
				all = append(all, p)
			}
		}
	}
	return all
}

// With returns the catalogue with the extensions that may be created, and the libraries that may be
// preloaded, of what is installed now. Both are names of the table of extensions.
func (c Catalogue) With(extensions, libraries []string) Catalogue {
	c.Extensions, c.Libraries = extensions, libraries
	return c
}
