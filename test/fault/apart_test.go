package fault

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/testkit/patience"
	"howdah/internal/testkit/rig"
)

// apart is how long a client may still be led to a primary that was replaced.
const apart = 5 * time.Second

// freshClient connects as a client that has just come. It returns who took it in: the address of
// the server's own host.
func (s *story) freshClient(config *pgx.ConnConfig) (string, error) {
	ctx, cancel := context.WithTimeout(s.Context(), patience.For(2*time.Second))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var member string
	err = conn.QueryRow(ctx, "SELECT current_setting('port') || ' ' || current_setting('data_directory')").Scan(&member)
	return member, err
}

// neverLedBack sends new clients, from machines that know no neighbour. Once apart has passed since
// then, all of them reach the new primary or are refused.
func (s *story) neverLedBack(name string, old rig.Member, since time.Time) {
	s.Helper()
	config, err := s.rig.Config(s.Context(), name)
	s.must(err, "find the endpoint")
	place := fmt.Sprintf("%d %s", old.Port, old.DataDir())
	reached, last := 0, time.Duration(0)
	s.eventually(90*time.Second, func() error {
		s.must(s.rig.ForgetNeighbours(), "forget the neighbours")
		came := time.Since(since)
		member, err := s.freshClient(config)
		switch {
		case err != nil:
			return err
		case member == place:
			last = came
			return errors.New("led to the old primary")
		case came < patience.For(apart):
			return errors.New("it is too early to say")
		}
		if reached++; reached < 20 {
			return fmt.Errorf("%d clients reached the new primary", reached)
		}
		return nil
	})
	s.Logf("the last client that was led to the old primary came after %s", last.Round(10*time.Millisecond))
	if last > patience.For(apart) {
		s.Errorf("a client was led to the old primary %s after the partition", last)
	}
}

// The primary's host loses etcd and its peers, and keeps its clients, with addresses that move. It
// gives the address up by what it sees itself, and clients reach the new primary.
func TestAloneAnAddressLeavesAHostThatIsApart(t *testing.T) {
	s := alone(t, func(o *rig.Options) { o.Netns, o.Moving = true, true })
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	since := time.Now()
	s.must(s.rig.Part(old.ZoneLetter(), rig.Control(), rig.Peers()), "part the primary's host")
	s.eventually(30*time.Second, func() error {
		if m, err := s.rig.Leader(s.Context(), id); err != nil || m.Name == old.Name {
			return fmt.Errorf("%s leads still, %w", m.Name, err)
		}
		return nil
	})
	s.neverLedBack("orders", old, since)
	w.works(10 * time.Second)
	s.must(s.rig.Part(old.ZoneLetter()), "heal")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.neverLedBack("orders", old, since)
	w.nothingLost()
}

// holdsAddress reports whether the kernel of a zone's host answers for an address.
func (s *story) holdsAddress(zone, address string) bool {
	s.Helper()
	command := s.rig.HostCommand(zone, "ip", "-o", "-4", "address", "show")
	out, err := exec.CommandContext(s.Context(), command[0], command[1:]...).Output()
	s.must(err, "list the addresses of "+zone)
	return strings.Contains(string(out), " "+address+"/")
}

// The edge of the primary's host is dead when another primary is elected: the agent takes the
// address away. Before that, the primary serves without its edge. If two hosts answer, it is a
// matter of luck which of them clients find. So the kernel of the old host is asked, too.
func TestAloneAnAddressLeavesAHostWithoutAnEdge(t *testing.T) {
	s := alone(t, func(o *rig.Options) { o.Netns, o.Moving = true, true })
	id := s.given("orders", true)
	w := s.writing("orders")
	old := s.leader(id)
	s.rig.KillPart("edge-" + old.ZoneLetter())
	config, err := s.rig.Config(s.Context(), "orders")
	s.must(err, "find the endpoint")
	dead := time.Now()
	s.eventually(60*time.Second, func() error {
		if _, err := s.freshClient(config); err != nil {
			t.Fatalf("a client, %s after the edge died: %v", time.Since(dead), err)
		}
		if time.Since(dead) < 5*time.Second {
			return errors.New("the agent may still look")
		}
		return nil
	})
	if !s.holdsAddress(old.ZoneLetter(), config.Host) {
		t.Fatalf("the host of the primary does not have %s: there is nothing to take away", config.Host)
	}
	since := time.Now()
	s.must(old.KillPostgres(), "kill PostgreSQL of the primary")
	s.neverLedBack("orders", old, since)
	s.eventually(15*time.Second, func() error {
		if s.holdsAddress(old.ZoneLetter(), config.Host) {
			return fmt.Errorf("%s still answers for %s", old.Host, config.Host)
		}
		return nil
	})
	s.must(s.rig.StartPart("edge-"+old.ZoneLetter()), "start the edge")
	s.eventually(60*time.Second, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.neverLedBack("orders", old, since)
	w.works(10 * time.Second)
	w.nothingLost()
}

// etcd is gone for everyone, with addresses that move. The primary serves at its address, also
// clients that come now.
func TestAloneAMovingAddressOutlivesEtcd(t *testing.T) {
	s := alone(t, func(o *rig.Options) { o.Netns, o.Moving = true, true })
	id := s.given("orders", true)
	w := s.writing("orders")
	config, err := s.rig.Config(s.Context(), "orders")
	s.must(err, "find the endpoint")
	leader := s.leader(id)
	s.rig.KillPart("serve")
	gone, refused := time.Now(), 0
	s.eventually(60*time.Second, func() error {
		if _, err := s.freshClient(config); err != nil {
			refused++
			return err
		}
		if time.Since(gone) < 15*time.Second {
			return errors.New("it is not gone for long")
		}
		return nil
	})
	t.Logf("%d clients were refused", refused)
	w.works(3 * time.Second)
	s.must(s.rig.StartPart("serve"), "start serve")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 60*time.Second), "orders")
	if now := s.leader(id); now.Name != leader.Name {
		t.Errorf("%s leads, was %s", now.Name, leader.Name)
	}
	w.nothingLost()
}
