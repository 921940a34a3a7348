package database

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/database/dial"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/testkit/hosttest"
)

// A database is made of another one's backup and WAL, by the real engine through the gateway of its
// host, and archives to a part of its own.
func TestADatabaseIsMadeOfAnothersBackup(t *testing.T) {
	t.Parallel()
	a := newArchived(t, "")
	host, _ := a.run(func(h *Host) { h.spares.Keep = 1 })
	a.Assign(a.Assignment)
	conn := a.admin(host)
	exec := func(sql string) {
		t.Helper()
		_, err := conn.Exec(t.Context(), sql)
		a.Must(err)
	}
	now := func() (at time.Time) {
		t.Helper()
		a.Must(conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&at))
		return at
	}
	exec("CREATE TABLE public.kept (what text)")
	exec("SET allow_in_place_tablespaces TO on")
	exec("CREATE TABLESPACE users LOCATION ''")
	exec("CREATE TABLE public.elsewhere TABLESPACE users AS SELECT 7 AS n")
	a.backup(host, backupmodel.Full)
	exec("INSERT INTO public.kept VALUES ('a')")
	moment := now()
	exec("INSERT INTO public.kept VALUES ('b')")
	a.restorable(2*time.Minute, now())

	b := a.Assignment
	port := hosttest.FreePort(t)
	b.ID, b.Scope, b.Port, b.RESTPort = "db-2.m1", "db-2", port, hosttest.FreePort(t)
	b.Inherits, b.Restore = true, &member.Restore{Database: "db-1", Repository: "main", Label: a.label(host), Until: moment}
	a.Assign(b)
	r := a.Awaits(b.ID, 2*time.Minute, func(r member.Report) error {
		if !r.Ready || r.InRecovery || r.Problem != member.None {
			return fmt.Errorf("report %+v", r)
		}
		return nil
	})
	if r.Timeline != 2 {
		t.Errorf("report %+v", r)
	}
	made, err := dial.Admin(t.Context(), host.Agent, b)
	a.Must(err)
	defer made.Close(t.Context())
	rows, err := made.Query(t.Context(), "SELECT what FROM public.kept UNION ALL SELECT n::text FROM public.elsewhere")
	a.Must(err)
	if all, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || fmt.Sprint(all) != "[a 7]" {
		t.Errorf("it has %v, %v", all, err)
	}
	_, err = made.Exec(t.Context(), "INSERT INTO public.kept VALUES ('c'); SELECT pg_switch_wal()")
	a.Must(err)
	a.Awaits(b.ID, time.Minute, func(r member.Report) error {
		if r.Archived == nil || r.Archived.Failing != "" {
			return fmt.Errorf("archived %+v", r.Archived)
		}
		return nil
	})
}

// label is that of the newest backup.
func (a *archived) label(h *Host) string {
	a.Helper()
	place, err := h.repositories.Place(a.ID)
	a.Must(err)
	listing, err := h.listBackups(a.Context(), h.UserOf(a.ID), place, "main")
	a.Must(err)
	if len(listing.Backups) == 0 {
		a.Fatal("there is no backup")
	}
	return listing.Backups[len(listing.Backups)-1].Label
}
