package fault

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// What AWS's drivers ask after a failover is true on every member: which instances there are, and
// which of them writes. The SQL is that of the JDBC driver.
func TestDriversAreToldTheNewWriter(t *testing.T) {
	s := begin(t, nil)
	s.must(s.rig.CreateCluster(s.Context(), "shop", 2), "create the cluster")
	id := s.clusterID("shop")
	for _, name := range []string{"shop-1", "shop-2"} {
		s.eventually(time.Minute, func() error { return s.tellsDrivers(name, "postgres", "shop-1 writes, shop-2 reads") })
	}
	s.must(s.execOn("shop-1", "postgres", "CREATE DATABASE app TEMPLATE template0"), "make a database")
	s.eventually(time.Minute, func() error { return s.tellsDrivers("shop-1", "app", "shop-1 writes, shop-2 reads") })
	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })

	s.must(s.leader(id).KillPostgres(), "kill PostgreSQL of the writer")
	began := time.Now()
	s.eventually(time.Minute, func() error { return s.writesSays("shop-2") })
	t.Logf("the new writer says so after %s", time.Since(began))
	s.eventually(time.Minute, func() error { return s.tellsDrivers("shop-1", "app", "shop-1 reads, shop-2 writes") })
	s.must(s.tellsDrivers("shop-2", "app", "shop-1 reads, shop-2 writes"), "ask the new writer")
}

// onEndpoint asks an instance by its endpoint, as the master user.
func (s *story) onEndpoint(name, database string, ask func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancel()
	config, err := s.rig.Config(ctx, name)
	if err != nil {
		return err
	}
	config.Database = database
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return ask(ctx, conn)
}

func (s *story) execOn(name, database, sql string) error {
	return s.onEndpoint(name, database, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, sql)
		return err
	})
}

// tellsDrivers: an instance says that it is itself, and who belongs to its cluster.
func (s *story) tellsDrivers(name, database, want string) error {
	return s.onEndpoint(name, database, func(ctx context.Context, conn *pgx.Conn) error {
		var aurora bool
		var self, all string
		err := conn.QueryRow(ctx, "SELECT (setting OPERATOR(pg_catalog.~~) '%aurora_stat_utils%') AS aurora_stat_utils FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'rds.extensions'").Scan(&aurora)
		err = cmp.Or(err, conn.QueryRow(ctx, "SELECT pg_catalog.aurora_db_instance_identifier()").Scan(&self))
		err = cmp.Or(err, conn.QueryRow(ctx, `SELECT coalesce(string_agg(SERVER_ID || CASE WHEN SESSION_ID OPERATOR(pg_catalog.=) 'MASTER_SESSION_ID' THEN ' writes' ELSE ' reads' END, ', ' ORDER BY SERVER_ID), '')
			FROM pg_catalog.aurora_replica_status() WHERE EXTRACT(EPOCH FROM(pg_catalog.NOW() OPERATOR(pg_catalog.-) LAST_UPDATE_TIMESTAMP)) OPERATOR(pg_catalog.<=) 300
			OR SESSION_ID OPERATOR(pg_catalog.=) 'MASTER_SESSION_ID' OR LAST_UPDATE_TIMESTAMP IS NULL`).Scan(&all))
		if err == nil && (!aurora || self != name || all != want) {
			err = fmt.Errorf("aurora %v, %q says: %q", aurora, self, all)
		}
		return err
	})
}

// writesSays: an instance says of itself that it writes.
func (s *story) writesSays(name string) error {
	return s.onEndpoint(name, "postgres", func(ctx context.Context, conn *pgx.Conn) error {
		var writer string
		return conn.QueryRow(ctx, `SELECT SERVER_ID FROM pg_catalog.aurora_replica_status() WHERE SESSION_ID OPERATOR(pg_catalog.=) 'MASTER_SESSION_ID'
			AND SERVER_ID OPERATOR(pg_catalog.=) pg_catalog.aurora_db_instance_identifier()`).Scan(&writer)
	})
}
