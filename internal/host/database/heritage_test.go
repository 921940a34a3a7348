package database

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/dial"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

// A server becomes the primary of data with another database's subscriptions: it disables them, and its
// agent says so. If that was a Multi-AZ DB cluster, drivers do not take it for one. What is in the data
// is in the standby's, too.
func TestDataOfAnotherDatabase(t *testing.T) {
	p := newPair(t)
	const whose = "SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = 'rdsadmin'"
	is := func(want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, func() error {
			got, err := p.ask(p.primary, whose)
			if err == nil && got != want {
				err = fmt.Errorf("the comment is %s", got)
			}
			return err
		})
	}
	is(`{"database":"db-1"}`)
	in := func(database string, of member.Assignment, deed func(ctx context.Context, conn *pgx.Conn) error) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience.For(5*time.Second))
		defer cancel()
		config, err := dial.AdminConfig(p.agent.Agent, of)
		p.Must(err)
		config.Database = database
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		return deed(ctx, conn)
	}
	do := func(sql string) {
		t.Helper()
		p.Must(in("rdsadmin", p.primary, func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, sql)
			return err
		}))
	}
	p.Must(in("postgres", p.primary, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.SetUpDrivers(ctx, conn, member.MultiAZCluster)
	}))
	do("INSERT INTO public.howdah_done (what, serial) VALUES ('drivers 15 5', 1)")
	do("CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere dbname=x' PUBLICATION p WITH (connect = false, slot_name = 's')")
	do("ALTER SUBSCRIPTION s ENABLE")
	do(`COMMENT ON DATABASE rdsadmin IS '{"database":"db-0"}'`)
	p.killPostmaster(p.primary)
	var leads member.Assignment
	testkit.Eventually(t, time.Minute, func() error {
		var said []member.Report
		for _, of := range []member.Assignment{p.primary, p.standby} {
			record, err := state.Get[member.Report](t.Context(), p.Store, state.Report(hosttest.Name, of.ID))
			if err != nil {
				return err
			}
			r := record.Value
			if said = append(said, r); r.Ready && !r.InRecovery && r.DisabledSubscriptions == 1 {
				leads = of
				return nil
			}
		}
		return fmt.Errorf("reports %+v", said)
	})
	testkit.Eventually(t, time.Minute, func() error {
		return in("postgres", leads, func(ctx context.Context, conn *pgx.Conn) error {
			var has bool
			err := conn.QueryRow(ctx, "SELECT to_regnamespace('rds_tools') IS NOT NULL").Scan(&has)
			if err == nil && has {
				err = errors.New("it has rds_tools")
			}
			return err
		})
	})
}
