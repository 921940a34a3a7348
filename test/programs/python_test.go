package programs

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"howdah/internal/testkit/rig"
)

var (
	djangoFailure = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): \S+ \(([^)\s]+)\)`)
	djangoRan     = regexp.MustCompile(`(?m)^Ran (\d+) tests in`)
	// A reason follows the name, which may have spaces in its brackets.
	pytestFailure = regexp.MustCompile(`(?m)^(?:FAILED|ERROR) ([^\s\[]+(?:\[.*?\])?)(?: - .*)?$`)
	pytestPassed  = regexp.MustCompile(`(\d+) passed`)
)

// djangoLabels are those of Django's tests that depend on the database most.
var djangoLabels = []string{
	"postgres_tests", "backends", "schema", "introspection", "inspectdb", "migrations", "migrate_signals", "transactions", "transaction_hooks",
	"select_for_update", "indexes", "constraints", "model_fields", "model_indexes", "db_functions", "db_utils", "expressions", "expressions_window",
	"bulk_create", "get_or_create", "queries", "lookup", "dates", "datetimes", "timezones", "custom_columns", "custom_pk", "test_runner",
}

// Django's own tests, which make databases, extensions, schemas and roles' settings.
func TestDjango(t *testing.T) {
	python, dir := installed(t, "venv", "bin", "python"), installed(t, "django", "tests")
	i := given(t, "django", false)
	args := append([]string{"runtests.py", "--settings=howdah_settings", "--parallel=2", "--noinput", "--timing"}, djangoLabels...)
	out, err := i.tries(25*time.Minute, dir, i.environ("postgres", "PYTHONPATH="+testdata(t)), python, args...)
	ran := number(djangoRan, out)
	t.Logf("Django ran %d tests: %v", ran, err)
	if ran < 2000 {
		t.Fatalf("the suite did not come to its end\n%s", last(out, 8000))
	}
	judge(t, "django.txt", failures(out, djangoFailure))
	if t.Failed() {
		t.Logf("%s", last(out, 100000))
	}
}

// SQLAlchemy's tests of dialects, and of its dialect for PostgreSQL.
func TestSQLAlchemy(t *testing.T) {
	python, dir := installed(t, "venv", "bin", "python"), installed(t, "sqlalchemy")
	i := given(t, "sqlalchemy", false)
	i.sql("postgres", "CREATE DATABASE alchemy")
	i.sql("alchemy", "CREATE SCHEMA test_schema; CREATE SCHEMA test_schema_2; CREATE EXTENSION hstore; CREATE EXTENSION citext")
	out, err := i.tries(25*time.Minute, dir, i.environ("alchemy"), python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rfE", "--tb=short",
		"--maxfail=500", "--dburi", "postgresql+psycopg://app:"+rig.Password+"@"+i.host+":"+i.port+"/alchemy", "test/dialect/test_suite.py", "test/dialect/postgresql")
	passed := number(pytestPassed, out)
	t.Logf("%d of SQLAlchemy's tests passed: %v", passed, err)
	if passed < 1000 {
		t.Fatalf("the suite did not come to its end\n%s", last(out, 8000))
	}
	judge(t, "sqlalchemy.txt", failures(out, pytestFailure))
	if t.Failed() {
		t.Logf("%s", last(out, 100000))
	}
}

// number returns the number in the first group of a pattern's last match, or 0.
func number(pattern *regexp.Regexp, text string) int {
	all := pattern.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1][1])
	return n
}
