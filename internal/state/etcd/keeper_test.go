package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/patience"
)

const smallQuota = 16 << 20

// fill writes until etcd takes no more: to one key again and again, or to as many keys with a
// prefix as etcd takes.
func fill(t *testing.T, client *clientv3.Client, keys string) {
	t.Helper()
	value := strings.Repeat("x", 256<<10)
	for n := range 10000 {
		key := "/filler"
		if keys != "" {
			key = keys + fmt.Sprint(n)
		}
		_, err := client.Put(t.Context(), key, value)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd was never full")
}

func keep(t *testing.T, members ...*Member) []*Keeper {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	var all []*Keeper
	for _, m := range members {
		k := &Keeper{Member: m, Credentials: m.credentials(t), Log: slog.New(slog.DiscardHandler)}
		all = append(all, k)
		done.Go(func() {
			if err := k.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { cancel(); done.Wait() })
	return all
}

// credentials returns those of the member's own files.
func (m *Member) credentials(t *testing.T) Credentials {
	t.Helper()
	pair, err := certs.Load(strings.TrimSuffix(m.server.Config().ClientTLSInfo.CertFile, "/"+certs.CertFile))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// A member that was filled with history takes writes again by itself.
func TestAFullMemberMendsItself(t *testing.T) {
	ca, _ := certs.New("test")
	cfg, _ := newConfig(t, ca, "s1")
	cfg.Quota = smallQuota
	m := start(t, cfg)
	fill(t, m.Client, "")
	k := keep(t, m)[0]
	writes(t, m.Client)
	if size := m.server.Server.Backend().Size(); size > smallQuota/2 {
		t.Errorf("%s are in the file still", Bytes(size))
	}
	if len(k.alarms()) != 0 {
		t.Error("the alarm stands")
	}
}

func writes(t *testing.T, client *clientv3.Client) {
	t.Helper()
	testkit.Eventually(t, 15*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := client.Put(ctx, "/after", "v")
		return err
	})
}

// What is really stored is not deleted to make room, and the alarm stands as long as there is no
// room. Meanwhile deletes are taken. Then all goes on.
func TestAFullMemberWaitsForADelete(t *testing.T) {
	ca, _ := certs.New("test")
	cfg, _ := newConfig(t, ca, "s1")
	cfg.Quota = smallQuota
	m := start(t, cfg)
	k := &Keeper{Member: m, Credentials: m.credentials(t), Log: slog.New(slog.DiscardHandler)}
	// The file has gaps. After the first times they take more.
	testkit.Eventually(t, 30*time.Second, func() error {
		fill(t, m.Client, fmt.Sprintf("/filler%d-", m.server.Server.KV().Rev()))
		if _, err := k.Mend(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Client.Put(t.Context(), "/more", "v"); !errors.Is(err, rpctypes.ErrNoSpace) {
			return fmt.Errorf("a write beyond the quota: %v", err) //nolint:errorlint // it may be none
		}
		return nil
	})
	keep(t, m)
	if _, err := m.Client.Delete(t.Context(), "/filler", clientv3.WithPrefix()); err != nil {
		t.Fatal(err)
	}
	writes(t, m.Client)
}

// Three members are defragmented one after the other, also the one that led. Nobody notices
// anything except the end of the alarm.
func TestThreeFullMembersMendThemselves(t *testing.T) {
	ca, _ := certs.New("test")
	var members []*Member
	for i := range 3 {
		cfg, _ := newConfig(t, ca, fmt.Sprintf("s%d", i+1))
		cfg.Quota = smallQuota
		if i > 0 {
			peers, err := Add(t.Context(), members[0].Client, cfg.Name, cfg.PeerAddr)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Peers, cfg.Join = peers, true
		}
		m := start(t, cfg)
		ctx, cancel := context.WithTimeout(t.Context(), patience.For(30*time.Second))
		if err := m.Promote(ctx); err != nil {
			t.Fatal(err)
		}
		cancel()
		members = append(members, m)
	}
	fill(t, members[0].Client, "")
	keepers := keep(t, members...)
	writes(t, members[1].Client)
	testkit.Eventually(t, 30*time.Second, func() error {
		all, err := keepers[2].Survey(t.Context())
		if err != nil {
			return err
		}
		for _, c := range all {
			if c.Err != nil || c.Full || c.Size > smallQuota/2 {
				return fmt.Errorf("%s has %s, full: %v, %w", c.Name, Bytes(c.Size), c.Full, c.Err)
			}
		}
		return nil
	})
}

// A member goes on while it is sent its quota in history several times over.
func TestHistoryIsCompactedBySize(t *testing.T) {
	ca, _ := certs.New("test")
	cfg, _ := newConfig(t, ca, "s1")
	cfg.Quota = smallQuota
	m := start(t, cfg)
	keep(t, m)
	value := strings.Repeat("x", 64<<10)
	for written := 0; written < 4*smallQuota; written += len(value) {
		testkit.Eventually(t, 10*time.Second, func() error {
			_, err := m.Client.Put(t.Context(), "/busy", value)
			return err
		})
	}
	writes(t, m.Client)
}
