package whole

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit/pgtest"
)

// ask returns the one value that a query answers.
func ask[T any](t *testing.T, s *pgtest.Server, query string) (value T) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), s.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func file(t *testing.T, s *pgtest.Server, relation string) string {
	t.Helper()
	return filepath.Join(ask[string](t, s, "SHOW data_directory"), ask[string](t, s, "SELECT pg_relation_filepath('"+relation+"')"))
}

func check(t *testing.T, s *pgtest.Server) Report {
	t.Helper()
	var last Seen
	patience := func(int64) time.Duration { return time.Minute }
	r, err := Check(t.Context(), s.Config(), Options{Sessions: 2, Patience: patience, Progress: func(seen Seen) {
		if seen.Bytes < last.Bytes || seen.Bytes > seen.OfBytes || seen.Relations < last.Relations || seen.Relations > seen.Of {
			t.Errorf("%+v after %+v", seen, last)
		}
		last = seen
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last.Relations != last.Of || last.Bytes != last.OfBytes || r.Tables+r.Indexes != last.Of {
		t.Errorf("looked at %+v, and reports %+v", last, r)
	}
	return r
}

// filled has a table with rows, some of them long, and indexes of several kinds.
func filled(t *testing.T) *pgtest.Server {
	t.Helper()
	s := pgtest.Start(t, pgtest.Options{Settings: "autovacuum = off\n"})
	s.Exec("CREATE TABLE orders (id int PRIMARY KEY, what text, at timestamptz DEFAULT now())")
	s.Exec("CREATE INDEX by_text ON orders (lower(what)) WHERE id % 2 = 0")
	s.Exec("CREATE INDEX by_brin ON orders USING brin (at)")
	s.Exec("CREATE INDEX by_hash ON orders USING hash (what)")
	s.Exec("CREATE UNLOGGED TABLE passing (id int PRIMARY KEY)")
	s.Exec("INSERT INTO orders SELECT n, repeat(md5(n::text), 1 + n % 300) FROM generate_series(1, 3000) n")
	s.Exec("CHECKPOINT")
	return s
}

func TestAServerThatIsWhole(t *testing.T) {
	t.Parallel()
	s := filled(t)
	s.Exec("CREATE EXTENSION amcheck; CREATE VIEW theirs AS SELECT bt_index_check('orders_pkey'::regclass)::text")
	s.Exec("CREATE ROLE joe")
	s.Exec("CREATE DATABASE shop")
	s.Exec("ALTER DATABASE shop SET role = joe; ALTER DATABASE shop SET idle_session_timeout = '1ms'; ALTER DATABASE shop SET default_transaction_isolation = serializable")
	s.Exec("ALTER ROLE rdsmon SET search_path = public; ALTER ROLE rdsmon SET statement_timeout = 1; ALTER ROLE rdsmon SET default_transaction_read_only = on")
	for range 2 {
		r := check(t, s)
		if r.Faults != 0 || len(r.Described) != 0 || r.Databases != 4 || r.Tables < 100 || r.Indexes < 100 || r.Bytes == 0 {
			t.Errorf("%+v", r)
		}
	}
}

// An index that has not all rows looks whole, page by page, and no checksum is wrong.
func TestAnIndexThatLacksRows(t *testing.T) {
	t.Parallel()
	s := filled(t)
	path := file(t, s, "orders_pkey")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Exec("UPDATE orders SET id = -id WHERE id = 17")
	s.Exec("CHECKPOINT")
	s.Kill()
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Up()
	r := check(t, s)
	if r.Faults != 1 || len(r.Described) != 1 {
		t.Fatalf("%+v", r)
	}
	f := r.Described[0]
	if f.Database != "rdsadmin" || f.Relation != "public.orders_pkey" || !strings.Contains(f.Says, "lacks matching index tuple") || strings.Contains(f.Says, "\n") {
		t.Errorf("%s", f)
	}
}

// Faults of tables, of pages that cannot be read and of files that are missing are all found, and do
// not end the check.
func TestDamagedTables(t *testing.T) {
	t.Parallel()
	s := filled(t)
	orders, text := file(t, s, "orders"), file(t, s, "by_text")
	s.Kill()
	page, err := os.ReadFile(orders)
	if err != nil {
		t.Fatal(err)
	}
	copy(page[8192+24:], []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}) // line pointers of the second page
	if err := os.WriteFile(orders, page, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(text); err != nil {
		t.Fatal(err)
	}
	s.Up()
	r := check(t, s)
	found := map[string]bool{}
	for _, f := range r.Described {
		found[f.Relation] = true
	}
	if !found["public.orders"] || !found["public.by_text"] || r.Databases != 3 {
		t.Errorf("%+v", r)
	}
}

// What could not be looked at is no promise.
func TestACheckThatCannotEnd(t *testing.T) {
	t.Parallel()
	s := filled(t)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Check(ctx, s.Config(), Options{Progress: func(Seen) { cancel() }}); err == nil {
		t.Error("a check that was broken off says that all is well")
	}
	config := s.Config()
	config.User = "nobody"
	if _, err := Check(t.Context(), config, Options{}); err == nil {
		t.Error("nobody may look, and all is well")
	}
}

// What users left in their databases must not run as the superuser who checks them.
func TestEventTriggersDoNotFollowTheCheck(t *testing.T) {
	t.Parallel()
	s := filled(t)
	s.Exec("CREATE TABLE ran (what text)")
	s.Exec("CREATE FUNCTION public.run() RETURNS event_trigger LANGUAGE plpgsql SECURITY INVOKER AS $$ BEGIN INSERT INTO public.ran VALUES (tg_tag || ' as ' || current_user); END $$")
	s.Exec("CREATE EXTENSION amcheck")
	for _, event := range []string{"ddl_command_start", "ddl_command_end", "sql_drop"} {
		s.Exec("CREATE EVENT TRIGGER on_" + event + " ON " + event + " EXECUTE FUNCTION public.run()")
		s.Exec("ALTER EVENT TRIGGER on_" + event + " ENABLE ALWAYS")
	}
	s.Exec("TRUNCATE ran")
	if r := check(t, s); r.Faults != 0 {
		t.Errorf("%+v", r)
	}
	if ran := ask[string](t, s, "SELECT coalesce(string_agg(what, ', '), '') FROM ran"); ran != "" {
		t.Errorf("functions of users ran: %s", ran)
	}
}

// A drill must not wait for what nobody is going to end, nor fail for what is no database any more.
// What nobody may connect to is looked at, too.
func TestWhatUsersLeftDoesNotHoldTheCheckUp(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{Settings: "autovacuum = off\nmax_prepared_transactions = 5\n"})
	s.Exec("CREATE EXTENSION amcheck; CREATE TABLE orders (id int PRIMARY KEY)")
	s.Exec("BEGIN; LOCK TABLE orders; PREPARE TRANSACTION 'it''s'")
	s.Exec("BEGIN; DROP EXTENSION amcheck; PREPARE TRANSACTION 'two'")
	for _, name := range []string{"closed", "broken"} {
		s.Exec("CREATE DATABASE " + name)
	}
	s.Exec("ALTER DATABASE closed ALLOW_CONNECTIONS false")
	s.Exec("UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'broken'") // as an interrupted DROP DATABASE does
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Check(ctx, s.Config(), Options{Sessions: 2})
	if err != nil || r.Faults != 0 || r.Databases != 4 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A part that takes longer than it may ends the check, however much time all has.
func TestACheckThatStandsStill(t *testing.T) {
	t.Parallel()
	s := filled(t)
	_, err := Check(t.Context(), s.Config(), Options{Patience: func(int64) time.Duration { return time.Nanosecond }})
	if !errors.Is(err, ErrStill) {
		t.Errorf("error %v", err)
	}
}

func TestLargeTablesAreSplit(t *testing.T) {
	t.Parallel()
	r := relation{OID: 1, Kind: table, Bytes: (2*mostPages + 1) * pageSize}
	parts := r.split("shop")
	var pages, ends int64
	for n, p := range parts {
		if p.from != int64(n)*mostPages || p.last != (n == 2) {
			t.Errorf("part %d: %+v", n, p)
		}
		pages += p.until - p.from + 1
		ends += p.bytes
	}
	if len(parts) != 3 || pages != 2*mostPages+1 || ends != r.Bytes {
		t.Errorf("%+v", parts)
	}
	r.Kind = tree
	if parts := r.split("shop"); len(parts) != 1 || !parts[0].last || parts[0].bytes != r.Bytes {
		t.Errorf("an index: %+v", parts)
	}
}

// The pages of an index that amcheck does not know are read, so the server sees which are none.
func TestADamagedIndexOfAnotherKind(t *testing.T) {
	t.Parallel()
	s := filled(t)
	path := file(t, s, "by_hash")
	s.Kill()
	pages, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(pages[3*8192+12:], []byte{0xff, 0xff, 0xff, 0xff}) // where its free space begins and ends
	if err := os.WriteFile(path, pages, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Up()
	if r := check(t, s); r.Faults != 1 || r.Described[0].Relation != "public.by_hash" || !strings.Contains(r.Described[0].Says, "invalid page") {
		t.Errorf("%+v", r)
	}
}
