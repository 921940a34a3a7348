package programs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"howdah/internal/testkit/page"
	"howdah/internal/testkit/rig"
)

// The page for those who come from RDS, from one instance to another: master users have here the rights
// that they have there.
func TestThePageForThoseWhoComeFromRDS(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/coming-from-rds.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := page.Blocks(string(text))
	if err != nil || len(blocks) < 3 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	from, to := given(t, "from", false), given(t, "to", false)
	from.sql("postgres", "CREATE ROLE shopkeeper LOGIN PASSWORD 'before-1'")
	from.sql("postgres", "CREATE ROLE reader; GRANT reader TO shopkeeper; GRANT shopkeeper TO app; ALTER ROLE shopkeeper SET work_mem = '8MB'")
	from.sql("postgres", "CREATE ROLE tokened LOGIN")
	from.sql("postgres", "GRANT rds_iam TO tokened")
	from.sql("postgres", "CREATE DATABASE shop OWNER shopkeeper")
	from.sql("shop", `CREATE EXTENSION pg_stat_statements; CREATE EXTENSION postgres_fdw; CREATE EXTENSION hstore;
		CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'other.example.com');
		SET ROLE shopkeeper;
		CREATE SCHEMA sales;
		CREATE TABLE sales.orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what hstore, total numeric CHECK (total > 0));
		CREATE VIEW sales.large AS SELECT * FROM sales.orders WHERE total > 100;
		GRANT SELECT ON sales.large TO reader;
		INSERT INTO sales.orders (what, total) SELECT hstore('n', i::text), i FROM generate_series(1, 10000) i;
		SELECT lo_from_bytea(0, 'large object')`)
	to.sql("postgres", "CREATE DATABASE shop")

	dir := t.TempDir()
	var services bytes.Buffer
	for name, i := range map[string]*instance{"old": from, "new": to} {
		fmt.Fprintf(&services, "[%s]\nhost=%s\nport=%s\ndbname=shop\nuser=app\nsslmode=verify-full\nsslrootcert=%s\n", name, i.host, i.port, all.Home.CAFile())
	}
	env := append(os.Environ(), "PGSERVICEFILE="+filepath.Join(dir, "services"), "PGPASSWORD="+rig.Password, "SHOP_PASSWORD=after-1")
	if err := os.WriteFile(filepath.Join(dir, "services"), services.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	shell := page.Shell{Dir: dir, Env: env, Within: 2 * time.Minute}
	for _, b := range blocks {
		shell.Run(t, b)
	}

	const sum = "SELECT count(*) || md5(string_agg(o::text, '' ORDER BY id)) FROM sales.orders o"
	if was, is := from.ask("shop", sum), to.ask("shop", sum); was != is {
		t.Errorf("the orders were %s, and are %s", was, is)
	}
	if owner := to.ask("shop", "SELECT relowner::regrole::text FROM pg_class WHERE oid = 'sales.orders'::regclass"); owner != "shopkeeper" {
		t.Errorf("the orders belong to %s", owner)
	}
	if may := to.ask("shop", "SELECT has_table_privilege('reader', 'sales.large', 'SELECT')::text"); may != "true" {
		t.Error("the reader may not read")
	}
	shell.Env = slices.Concat(env, []string{"PGUSER=shopkeeper", "PGPASSWORD=after-1"})
	if out := shell.Run(t, page.Block{Heading: "log in", Commands: "psql 'service=new user=shopkeeper' -XAtc 'SHOW work_mem'"}); out != "8MB\n" {
		t.Errorf("the application sees %q", out)
	}
}
