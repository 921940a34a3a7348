package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/system/plainfile"
)

const (
	// knownFile keeps which hosts there are for the day on which the home is lost: a
	// backup does not know those that joined after it.
	knownFile = "hosts.json"
	// listEvery is how often hosts are listed. Nobody has the newest copy of a database that
	// soon after it joined.
	listEvery = 30 * time.Second
)

// known are hosts that there are, or were when the home was restored.
type known struct {
	// Restored is the restoration (regain.Home) since which the home has said so.
	Restored string   `json:"restored,omitempty"`
	Hosts    []string `json:"hosts"`
}

// list remembers which hosts there are. Those that a restored home has forgotten stay
// until it has taken its databases over.
func (h *holdings) list(ctx context.Context) error {
	if time.Since(h.listed) < listEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, EtcdTimeout)
	defer cancel()
	answer, err := h.agent.Store.Client.Txn(ctx).Then(
		clientv3.OpGet(state.Restored()), clientv3.OpGet(state.HeldRoot, clientv3.WithPrefix(), clientv3.WithCountOnly()),
		clientv3.OpGet(state.HostRoot, clientv3.WithPrefix(), clientv3.WithKeysOnly())).Commit()
	if err != nil {
		return fmt.Errorf("list hosts: %w", err)
	}
	var home regain.Home
	if kvs := answer.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
		if err := json.Unmarshal(kvs[0].Value, &home); err != nil {
			return fmt.Errorf("read of the restoration: %w", err)
		}
	}
	held := answer.Responses[1].GetResponseRange().Count > 0
	now := known{Restored: home.ID}
	for _, kv := range answer.Responses[2].GetResponseRange().Kvs {
		now.Hosts = append(now.Hosts, state.Tail(string(kv.Key), state.HostRoot))
	}
	// A full disk must not keep the host from telling what it has.
	before, err := readKnown(h.agent.Path(knownFile))
	if err != nil {
		h.agent.Log.Warn("which hosts there were is lost", "error", err)
	}
	now = now.after(before, held)
	if now.Restored != before.Restored || !slices.Equal(now.Hosts, before.Hosts) {
		if err := writeKnown(h.agent.Path(knownFile), now); err != nil {
			h.agent.Log.Warn("remember which hosts there are", "error", err)
		}
	}
	if !slices.Equal(h.hosts, now.Hosts) {
		h.hosts, h.at = now.Hosts, time.Time{} // to be told
	}
	h.listed = time.Now()
	return nil
}

// after is what is known after the home was asked; held: it has not taken all its
// databases over.
func (k known) after(before known, held bool) known {
	if held && before.Restored != k.Restored {
		k.Restored = before.Restored
		k.Hosts = append(k.Hosts, before.Hosts...)
	}
	slices.Sort(k.Hosts)
	k.Hosts = slices.Compact(k.Hosts)
	return k
}

// readKnown answers what was remembered.
func readKnown(path string) (known, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return known{}, nil
	}
	if err != nil {
		return known{}, fmt.Errorf("read which hosts there were: %w", err)
	}
	var k known
	if err := json.Unmarshal(text, &k); err != nil {
		return known{}, fmt.Errorf("read which hosts there were: %w", err)
	}
	return k, nil
}

func writeKnown(path string, k known) error {
	text, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("remember hosts: %w", err)
	}
	return plainfile.Replace(path, text, 0o600)
}
