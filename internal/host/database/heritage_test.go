package database

import (
	"context"
	"fmt"
	"testing"
	"time"

	"howdah/internal/host/database/dial"
	"howdah/internal/model/member"
	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hosttest"
	"howdah/internal/testkit/patience"
)

// A server becomes the primary of data with another database's subscriptions: it disables them, and its
// agent says so. What is in the data is in the standby's, too.
func TestSubscriptionsOfAnotherDatabase(t *testing.T) {
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
	do := func(sql string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience.For(5*time.Second))
		defer cancel()
		conn, err := dial.Admin(ctx, p.agent.Agent, p.primary)
		p.Must(err)
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, sql)
		p.Must(err)
	}
	do("CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere dbname=x' PUBLICATION p WITH (connect = false, slot_name = 's')")
	do("ALTER SUBSCRIPTION s ENABLE")
	do(`COMMENT ON DATABASE rdsadmin IS '{"database":"db-0"}'`)
	p.killPostmaster(p.primary)
	testkit.Eventually(t, time.Minute, func() error {
		var said []member.Report
		for _, of := range []member.Assignment{p.primary, p.standby} {
			record, err := state.Get[member.Report](t.Context(), p.Store, state.Report(hosttest.Name, of.ID))
			if err != nil {
				return err
			}
			r := record.Value
			if said = append(said, r); r.Ready && !r.InRecovery && r.DisabledSubscriptions == 1 {
				return nil
			}
		}
		return fmt.Errorf("reports %+v", said)
	})
}
