package fault

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
	"howdah/internal/testkit/patience"
)

// A database that waits for its standby acknowledges nothing while the standby is gone. What
// somebody else receives, such as a read replica, is no copy that may be promoted.
func TestWritesWaitForAStandby(t *testing.T) {
	s := begin(t, nil)
	id := s.given("orders", true)
	s.must(s.rig.Tag(s.Context(), "orders", "howdah:wait-for-standby", "true"), "have its writes wait")
	s.eventually(30*time.Second, func() error {
		text, err := s.rig.Store.Client.Get(s.Context(), patroni.ConfigKey(id))
		if err == nil && (len(text.Kvs) == 0 || !strings.Contains(string(text.Kvs[0].Value), `"synchronous_mode_strict":true`)) {
			err = fmt.Errorf("Patroni is not told: %s", text.Kvs)
		}
		return err
	})
	s.writesWait("orders", id, "alone")
	s.must(s.rig.Replica(s.Context(), "orders-read", "orders", false), "make a read replica")
	s.follows("orders", "orders-read")
	s.writesWait("orders", id, "beside_a_replica")
}

// writesWait freezes the standby until Patroni no longer counts on it, and tries a write.
func (s *story) writesWait(name, id, when string) {
	s.Helper()
	standby := s.standby(id)
	s.must(standby.Freeze(), "freeze the standby")
	defer standby.Thaw()
	s.eventually(30*time.Second, func() error {
		l, err := fence.Read(s.Context(), s.rig.Store.Client, id)
		if err == nil && len(l.Sync.Standbys) > 0 {
			err = fmt.Errorf("in sync are %v", l.Sync.Standbys)
		}
		return err
	})
	config, err := s.rig.Config(s.Context(), name)
	s.must(err, "find the endpoint")
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(10*time.Second))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	s.must(err, "connect")
	defer conn.Close(context.WithoutCancel(ctx))
	// Patroni is behind by one turn of its loop at most.
	limited, cancelWrite := context.WithTimeout(s.Context(), 5*time.Second)
	defer cancelWrite()
	if _, err := conn.Exec(limited, "CREATE TABLE waits_"+when+" ()"); err == nil {
		s.Errorf("%s: a write was acknowledged without the standby", when)
	}
	s.must(standby.Thaw(), "thaw the standby")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
}
