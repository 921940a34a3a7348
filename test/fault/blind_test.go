package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"howdah/internal/engine/postgres"
)

// The file of a standby's socket is gone. The standby streams and takes logins, and a new Patroni
// says for ever that it is starting. It counts again without a person.
func TestAStandbyThatPatroniDoesNotSeeCountsAgain(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	w := s.writing("orders")
	standby := s.standby(id)
	before, err := postgres.Postmaster(standby.DataDir())
	s.must(err, "find the standby's PostgreSQL")
	socket := filepath.Join(standby.SocketDir(), fmt.Sprintf(".s.PGSQL.%d", standby.Port))
	s.must(os.Remove(socket), "remove the socket")
	s.must(standby.KillPatroni(), "kill the standby's Patroni")
	s.eventually(90*time.Second, func() error {
		now, err := postgres.Postmaster(standby.DataDir())
		if err == nil && (now == 0 || now == before) {
			err = errors.New("it was not started again")
		}
		if err == nil {
			_, err = os.Stat(socket)
		}
		if err == nil {
			err = s.rig.InSync(s.Context(), id, 1)
		}
		return err
	})
	s.eventually(30*time.Second, func() error { return s.hasEvent("orders", "hanging Patroni") })
	w.works(15 * time.Second)
	w.nothingLost()
}
