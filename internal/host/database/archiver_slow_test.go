package database

import (
	"strings"
	"testing"
	"time"

	backupmodel "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/s3test"
)

// TestASlowRepositoryStopsNoPrimary: each message to an S3 server and from it takes its time. So what
// is archived comes late, and a backup takes long, but both end. Then the server answers nobody, and
// nobody is told so: the primary goes on, and once the server answers, nothing is missing.
func TestASlowRepositoryStopsNoPrimary(t *testing.T) {
	depth.Deep(t)
	t.Parallel()
	server := s3test.Start(t)
	link := server.Link(t)
	a := archiving(t, newWorld(t, ""))
	a.S3("main", server, link.Endpoint)
	h, stop, conn := a.serves()
	t.Cleanup(stop)

	link.Slow(20 * time.Millisecond) // some 800 KB a second
	a.backup(h, backupmodel.Full)
	a.fillWAL(conn, 2)
	a.exec(conn, "INSERT INTO said VALUES (1)")
	var wrote time.Time
	a.Must(conn.QueryRow(a.Context(), "SELECT clock_timestamp()").Scan(&wrote))
	a.restorable(2*time.Minute, wrote)

	pass := link.Hold()
	t.Cleanup(pass)
	a.fillWAL(conn, 3)
	a.exec(conn, "INSERT INTO said VALUES (2)")
	a.Must(conn.QueryRow(a.Context(), "SELECT clock_timestamp()").Scan(&wrote))
	held := a.says(func(_ member.Report, s member.Archived) bool {
		return strings.Contains(s.Failing, "it says nothing, for ") && s.Waiting > 0 && !s.Since.IsZero()
	})
	if !held.Restorable.At.Before(wrote) {
		t.Errorf("%s can be restored, and what was written by %s was not archived", held.Restorable.At, wrote)
	}
	link.Slow(0)
	pass()
	a.whole(conn)
	m := a.restorable(2*time.Minute, wrote)
	if got := a.restore(h, m.At, "SELECT string_agg(DISTINCT n::text, ' ') FROM said"); got != "0 1 2" {
		t.Errorf("restored %q", got)
	}
}
