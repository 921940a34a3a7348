package programs

import (
	"os"
	"regexp"
	"testing"
	"time"

	"howdah/internal/testkit"
)

// pgloaderFailure finds the statements that the server refused. Each is there several times.
var pgloaderFailure = regexp.MustCompile(`(?m)^QUERY: (.*)$`)

// pgloader brings a database of SQLite with its types, keys, indexes and sequences, and brings its rows
// anew past triggers. What it wants and the master user may not is listed in testdata.
func TestPgloaderFromSQLite(t *testing.T) {
	l := givenPgloader(t, "fromsqlite")
	l.loads("shop.load")
	l.whole()
	for query, want := range map[string]string{
		"SELECT count(*) || ' ' || count(*) FILTER (WHERE vip) || ' ' || max(joined) FROM customers":  "1000 100 2024-02-11 16:00:00+00",
		"SELECT string_agg(DISTINCT encode(photo, 'hex'), ',') FROM customers":                        "00ff27",
		"SELECT nextval('orders_id_seq')::text":                                                       "20001",
		"SELECT count(*)::text FROM pg_indexes WHERE schemaname = 'public'":                           "5",
		"SELECT string_agg(conname || ' ' || convalidated, ',') FROM pg_constraint WHERE contype='f'": "orders_customer_id_fkey true",
	} {
		if got := l.ask("shop", query); got != want {
			t.Errorf("%s: %s, and not %s", query, got, want)
		}
	}

	l.sql("shop", `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no more orders'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION refuse()`)
	l.again("no foreign keys", "replica")
	l.whole()
	out := l.again("no foreign keys, disable triggers", "origin")
	judge(t, "pgloader.txt", failures(out, pgloaderFailure))
}

// pgloader brings a file of comma-separated values, and leaves out the row that does not fit.
func TestPgloaderFromCSV(t *testing.T) {
	l := givenPgloader(t, "fromcsv")
	l.loads("prices.load")
	const want = `lamp,NULL,NULL,it says "on";rope,12.50,2024-05-02,20 m; red;tent,199.90,2024-05-01,two people`
	if got := l.ask("shop", "SELECT string_agg(concat_ws(',', sku, coalesce(price::text, 'NULL'), coalesce(since::text, 'NULL'), note), ';' ORDER BY sku) FROM prices"); got != want {
		t.Errorf("the prices are %s", got)
	}
	if key := l.ask("shop", "SELECT count(*)::text FROM pg_constraint WHERE conrelid = 'prices'::regclass AND contype = 'p'"); key != "1" {
		t.Errorf("there are %s primary keys", key)
	}
}

// loader is an instance with a database shop, and a directory with one of SQLite.
type loader struct {
	*instance
	dir string
}

func givenPgloader(t *testing.T, name string) *loader {
	t.Helper()
	testkit.NeedProgram(t, "pgloader")
	sqlite := testkit.NeedProgram(t, "sqlite3")
	l := &loader{instance: given(t, name, false), dir: t.TempDir()}
	l.sql("postgres", "CREATE DATABASE shop")
	l.runs(time.Minute, l.dir, os.Environ(), sqlite, l.dir+"/shop.sqlite", ".read "+testdata(t, "pgloader", "shop.sql"))
	return l
}

// loads runs a file of testdata, which pgloader must take.
func (l *loader) loads(file string) {
	l.Helper()
	if out, err := l.pgloader(file); err != nil {
		l.Fatalf("%s: %v\n%s", file, err, last(out, 8000))
	}
}

// again brings the rows once more, in a session with a role of replication. What the server refused is
// in the output.
func (l *loader) again(how, role string) string {
	l.Helper()
	out, err := l.pgloader("again.load", "HOW="+how, "ROLE="+role)
	l.Logf("%s, %s: %v", how, role, err)
	return out
}

// pgloader runs a file of testdata, whose variables are in the environment. It takes the authorities that
// it trusts from OpenSSL's variable, and would write below /tmp.
func (l *loader) pgloader(file string, variables ...string) (string, error) {
	env := l.environ("shop", append(variables, "SSL_CERT_FILE="+all.Home.CAFile(), "SQLITE="+l.dir+"/shop.sqlite", "CSV="+testdata(l.T, "pgloader", "prices.csv"))...)
	return l.tries(time.Minute, l.dir, env, "pgloader", "--root-dir", l.dir+"/pgloader", testdata(l.T, "pgloader", file))
}

// whole fails the test unless all orders are there.
func (l *loader) whole() {
	l.Helper()
	const want = "20000 2000100.00 15000 3"
	if got := l.ask("shop", "SELECT concat_ws(' ', count(*), sum(total), count(what), count(DISTINCT what)) FROM orders"); got != want {
		l.Errorf("the orders are %s, and not %s", got, want)
	}
}
