package cut

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/pace"
	"howdah/internal/model/lsn"
)

// AutoConfFile is what ALTER SYSTEM writes. It wins over Patroni's postgresql.conf,
// and survives us.
const AutoConfFile = "postgresql.auto.conf"

// standbySignal is in the data directory of whoever is no primary.
const standbySignal = "standby.signal"

// Modes of that file. Patroni takes settings of recovery out of it whenever it
// writes its own, by opening it for writing: a file that its user may only read
// stays as it is. Nor does PostgreSQL replace it then (ALTER SYSTEM).
const (
	openMode   = 0o600
	sealedMode = 0o400
)

// cutTimeout bounds one attempt to make a cut, or to lift it.
const cutTimeout = 2 * time.Second

// receiverLook is the pause between the two looks that must find no receiver.
const receiverLook = 50 * time.Millisecond

// Standby is a member of this host, as far as it may have to be cut off from a primary. All
// fields are required.
type Standby struct {
	*agent.Member
	DataDir string
	// Admin connects to its server as an administrator.
	Admin func(context.Context) (*pgx.Conn, error)
	// LSN is what its server has, as was seen last.
	LSN func() lsn.LSN
}

// confirms: this member could confirm commits to the primary of a leadership.
func (s *Standby) confirms(l fence.Leadership) bool {
	return s.Database() == l.Database && slices.Contains(l.Sync.Standbys, s.Name())
}

// mustBeCut reports whether a case wants this member cut off. Once the lost primary
// is replaced, a member that is meant to receive from another one, or from nobody,
// has to be let go: its receiver has no address but the right one.
func (s *Standby) mustBeCut(c fence.Case) bool {
	return s.confirms(c.Leadership) && (c.Phase != fence.Revoked || s.mayReceiveFrom(c.Postgres))
}

// mayReceiveFrom reads what Patroni has configured: whether a receiver that is not
// cut could connect to an address. What cannot be read counts as yes.
func (s *Standby) mayReceiveFrom(address string) bool {
	_, err := os.Stat(filepath.Join(s.DataDir, standbySignal))
	if errors.Is(err, os.ErrNotExist) {
		return false // a primary receives nothing
	}
	text, err := s.User().ReadFile(filepath.Join(s.DataDir, "postgresql.conf"))
	host, port, splitErr := net.SplitHostPort(address)
	if err != nil || splitErr != nil {
		return true
	}
	return namesUpstream(string(text), host, port)
}

// namesUpstream: the connection string that counts, the last one, has this host and port.
func namesUpstream(conf, host, port string) bool {
	var last string
	for line := range strings.Lines(conf) {
		if name, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(name) == "primary_conninfo" {
			last = value
		}
	}
	words := strings.FieldsFunc(last, func(c rune) bool { return c == ' ' || c == '\'' || c == '\n' })
	return slices.Contains(words, "host="+host) && slices.Contains(words, "port="+port)
}

// IsCut reports whether there is a cut on disk, which may have to be lifted.
func (s *Standby) IsCut() bool {
	text, err := s.User().ReadFile(filepath.Join(s.DataDir, AutoConfFile))
	return err == nil && strings.Contains(string(text), "primary_conninfo")
}

// IsSealed reports whether the cut on disk is one that Patroni cannot undo.
func (s *Standby) IsSealed() bool {
	info, err := os.Stat(filepath.Join(s.DataDir, AutoConfFile))
	return err == nil && info.Mode().Perm() == sealedMode && s.IsCut()
}

// cutReceiver makes a cut, and answers nil only when it is true; or lifts it. Both
// may be done again.
func (s *Standby) cutReceiver(ctx context.Context, cut bool) error {
	ctx, cancel := context.WithTimeout(ctx, cutTimeout)
	defer cancel()
	if !cut {
		// Where no server runs Patroni takes the rest of the cut away.
		if err := s.User().Chmod(filepath.Join(s.DataDir, AutoConfFile), openMode); err != nil {
			return fmt.Errorf("lift the cut of %s: %w", s.ID, err)
		}
	}
	conn, err := s.Admin(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if !cut {
		return s.setUpstream(ctx, conn, "ALTER SYSTEM RESET primary_conninfo")
	}
	return s.holdReceiver(ctx, conn)
}

func (s *Standby) setUpstream(ctx context.Context, conn *pgx.Conn, sql string) error {
	for _, statement := range []string{sql, "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("cut WAL receiver of %s: %w", s.ID, err)
		}
	}
	return nil
}

// receivingSQL: a receiver runs, be it only connecting, or the server may start one.
const receivingSQL = `SELECT current_setting('primary_conninfo') <> ''
	OR EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'walreceiver')
	OR EXISTS (SELECT FROM pg_stat_wal_receiver)`

// holdReceiver takes the receiver's address away for good, and waits for its end.
// A cut that held already is only looked at. Of a new one two looks have to find
// nothing: the process that starts receivers reads the new setting a moment later.
func (s *Standby) holdReceiver(ctx context.Context, conn *pgx.Conn) error {
	looks := 1
	for {
		if !s.IsSealed() {
			looks = 2
			if err := s.seal(ctx, conn); err != nil {
				return err
			}
		}
		var receiving bool
		if err := conn.QueryRow(ctx, receivingSQL).Scan(&receiving); err != nil {
			return fmt.Errorf("cut WAL receiver of %s: %w", s.ID, err)
		}
		switch {
		case receiving:
			looks = 2
		case s.IsSealed():
			looks--
		}
		if looks == 0 {
			return nil
		}
		pause := receiverLook
		if receiving {
			pause = receiverLook / 10
		}
		if !pace.Sleep(ctx, pause) {
			return fmt.Errorf("WAL receiver of %s still runs: %w", s.ID, fence.ErrRefused)
		}
	}
}

func (s *Standby) seal(ctx context.Context, conn *pgx.Conn) error {
	// Patroni takes the cut out of a file that it opened before the seal. What it leaves is sealed,
	// and says nothing.
	path := filepath.Join(s.DataDir, AutoConfFile)
	if err := s.User().Chmod(path, openMode); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cut WAL receiver of %s: %w", s.ID, err)
	}
	if err := s.setUpstream(ctx, conn, "ALTER SYSTEM SET primary_conninfo = ''"); err != nil {
		return err
	}
	if err := s.User().Chmod(path, sealedMode); err != nil {
		return fmt.Errorf("cut WAL receiver of %s: %w", s.ID, err)
	}
	return nil
}
