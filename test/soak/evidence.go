package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/state"
	"howdah/internal/testkit/rig"
)

// secret has families of keys with secrets in them.
var secret = []string{state.AuthorityRoot, state.KeyRoot, state.NotifyRoot, state.SpecRoot}

// Evidence writes, beside the logs of the rig, what Howdah knew when something did not hold:
// status, failovers, and what etcd has.
func (s *Soak) Evidence(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	texts := map[string]string{"keys.txt": s.contents(ctx)}
	for name, args := range map[string][]string{"status.txt": {"status"}, "failovers.txt": {"failovers"}} {
		text, err := s.howdah(ctx, args...)
		texts[name] = fmt.Sprintf("%s\n%v\n", text, err)
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(s.Rig.Dir, name), []byte(text), 0o600); err != nil {
			s.Log("keep %s: %v", name, err)
		}
	}
}

func (s *Soak) contents(ctx context.Context) string {
	answer, err := s.Rig.Store.Client.Get(ctx, "/", clientv3.WithPrefix())
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, kv := range answer.Kvs {
		value := string(kv.Value)
		for _, root := range secret {
			if strings.HasPrefix(string(kv.Key), root) {
				value = "(not shown)"
			}
		}
		fmt.Fprintf(&text, "%s (%d) %s\n", kv.Key, kv.ModRevision, value)
	}
	return text.String()
}

// keepMembers copies what each Patroni of a database wrote to a place that outlives the members.
func (s *Soak) keepMembers(id string) {
	if s.Keep == "" {
		return
	}
	for _, zone := range rig.Zones {
		logs, err := filepath.Glob(filepath.Join(s.Rig.HostDir(zone), "members", id+".*", "log", "patroni.log"))
		for _, name := range logs {
			member := filepath.Base(filepath.Dir(filepath.Dir(name)))
			err = errors.Join(err, copyTo(name, filepath.Join(s.Keep, member+".log")))
		}
		if err != nil {
			s.Log("keep the logs of %s: %v", id, err)
		}
	}
}

func copyTo(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("keep a log: %w", err)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o600)); err != nil {
		return fmt.Errorf("keep a log: %w", err)
	}
	return nil
}
