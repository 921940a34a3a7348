package tpcc

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit/pgtest"
)

// lab is a server with a database of 2 warehouses for each mode. Tests work on copies.
type lab struct {
	*pgtest.Server
	copies int
}

func startLab(t *testing.T, modes ...Mode) *lab {
	t.Helper()
	l := &lab{Server: pgtest.Start(t, pgtest.Options{Settings: "shared_buffers = '256MB'\nmax_connections = 40\n"})}
	for _, mode := range modes {
		l.Exec("CREATE DATABASE " + string(mode))
		if err := Build(t.Context(), l.of(string(mode)), BuildOptions{Warehouses: 2, Workers: 2, Mode: mode, Seed: 1}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// of is the configuration of a database.
func (l *lab) of(database string) *pgx.ConnConfig {
	config := l.Config()
	config.Database = database
	return config
}

// copy makes a copy of a mode's database.
func (l *lab) copy(t *testing.T, mode Mode) *pgx.ConnConfig {
	t.Helper()
	l.copies++
	name := fmt.Sprintf("copy_%d", l.copies)
	l.Exec(fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", name, mode))
	t.Cleanup(func() { l.drop(t, name) })
	return l.of(name)
}

// drop makes room for the next copies. The test's context has ended by then.
func (l *lab) drop(t *testing.T, name string) {
	t.Helper()
	conn, err := pgx.ConnectConfig(context.Background(), l.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	if _, err := conn.Exec(context.Background(), fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", name)); err != nil {
		t.Error(err)
	}
}

// empty makes a database without anything.
func (l *lab) empty(t *testing.T) *pgx.ConnConfig {
	t.Helper()
	return l.copy(t, "template1")
}

func connect(t *testing.T, config *pgx.ConnConfig) *pgx.Conn {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// number asks for one. lab stands for the schema, as everywhere.
func number(t *testing.T, conn *pgx.Conn, sql string) float64 {
	t.Helper()
	var n float64
	if err := conn.QueryRow(t.Context(), strings.ReplaceAll(sql, "lab.", DefaultSchema+".")).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// mustHold checks all conditions.
func mustHold(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	all, err := Check(t.Context(), conn, DefaultSchema)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(conditions) {
		t.Errorf("%d conditions were checked", len(all))
	}
	for _, c := range all {
		if !c.Holds() {
			t.Errorf("condition %d does not hold: %+v", c.Number, c)
		}
	}
}

// short is a run that tells something within seconds.
func short(mode Mode, call Call) RunOptions {
	return RunOptions{
		Users: 3, Mode: mode, Call: call, AllWarehouses: true, SpawnEvery: -1, RampUp: time.Second / 2, Measure: 4 * time.Second, Seed: 1,
	}
}
