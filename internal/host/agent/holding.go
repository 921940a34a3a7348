package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/model/regain"
	"howdah/internal/state"
	"howdah/internal/system/fscrypt"
)

const (
	// holdingEvery is how often a host says what data it has while a database waits to be
	// taken over, and holdingSlow how often at other times after a restoration.
	holdingEvery = time.Second
	holdingSlow  = 30 * time.Second
)

// holdings tells what data this host has once the home was restored, and tells all
// again that was told of the host and its members.
type holdings struct {
	agent   *Agent
	cache   *state.Cache
	home    string // of what was told; "": of nothing
	at      time.Time
	copies  map[string]regain.Copy // told, by member id
	members []string               // told
	hosts   []string               // told, or to be told
	listed  time.Time              // hosts were listed
	// inspector is that of this restoration.
	inspector Inspector
	sealed    map[string]sealed // of members whose directories are locked
}

func (a *Agent) followRestored(ctx context.Context) error {
	h := &holdings{agent: a, cache: state.NewCache(a.Store.Client, a.Log, state.RestoredRoot, state.HeldRoot)}
	go func() { _ = h.cache.Run(ctx) }()
	if err := h.cache.Loaded(ctx); err != nil {
		return nil //nolint:nilerr // it was told to end
	}
	for pace.Sleep(ctx, holdingEvery) {
		_ = h.list(ctx) // again in a second; etcd may be away for long
		home, err := state.Load[regain.Home](h.cache, state.Restored())
		if err != nil {
			continue
		}
		if err := h.tell(ctx, home.Value); err != nil && ctx.Err() == nil {
			a.Log.Warn("tell the restored home what is here", "error", err)
		}
	}
	return nil
}

func (h *holdings) tell(ctx context.Context, home regain.Home) error {
	if h.home != home.ID {
		h.agent.Log.Info("the home was restored: telling it what is here", "from", home.From, "taken", home.Taken)
		h.home, h.at, h.copies, h.members = home.ID, time.Time{}, map[string]regain.Copy{}, nil
		h.inspector, h.sealed = h.agent.Kind.Inspector(), map[string]sealed{}
		h.agent.undescribed.Store(true)
		h.listed = time.Time{}
		if err := h.list(ctx); err != nil {
			h.home = "" // again
			return err
		}
		for _, r := range h.agent.Members() {
			r.publisher.again()
		}
	}
	if len(h.cache.Keys(state.HeldRoot)) == 0 && time.Since(h.at) < holdingSlow {
		return nil
	}
	copies, err := h.look(ctx)
	if err != nil {
		return err
	}
	ops, members := h.news(home.ID, copies)
	if len(ops) > 0 || h.at.IsZero() {
		said := regain.Holding{Home: home.ID, Host: h.agent.Name, Members: members, Hosts: h.hosts, At: time.Now().UTC()}
		// The list comes last: what it names is there.
		if _, err := h.agent.Store.CommitEach(ctx, append(ops, state.Put(state.Holding(h.agent.Name), said))); err != nil {
			h.at = time.Time{}
			return err
		}
	}
	h.at, h.copies, h.members = time.Now(), copies, members
	return nil
}

// news are the changes since it was told last.
func (h *holdings) news(home string, copies map[string]regain.Copy) (ops []state.Op, members []string) {
	for id, c := range copies {
		members = append(members, id)
		c.Home = home
		copies[id] = c
		if old, told := h.copies[id]; !told || !reflect.DeepEqual(old, c) {
			ops = append(ops, state.Put(state.HeldCopy(h.agent.Name, id), c))
		}
	}
	slices.Sort(members)
	for id := range h.copies {
		if _, there := copies[id]; !there {
			ops = append(ops, state.Delete(state.HeldCopy(h.agent.Name, id)))
		}
	}
	return ops, members
}

// look finds all members of which data are here.
func (h *holdings) look(ctx context.Context) (map[string]regain.Copy, error) {
	entries, err := os.ReadDir(h.agent.Path("members"))
	if err != nil {
		return nil, fmt.Errorf("look for members: %w", err)
	}
	copies := map[string]regain.Copy{}
	for _, e := range entries {
		if !IsMemberID(e.Name()) {
			continue
		}
		if c, ok := h.copyOf(ctx, e.Name()); ok {
			copies[e.Name()] = c
		}
	}
	return copies, ctx.Err()
}

// copyOf is what is here of a member; not ok: no data.
func (h *holdings) copyOf(ctx context.Context, id string) (c regain.Copy, ok bool) {
	a := h.agent
	a.looking.Lock()
	defer a.looking.Unlock()
	c = regain.Copy{Host: a.Name}
	c.Assignment.ID = id
	c.Assignment.Scope, c.Assignment.Name, _ = strings.Cut(id, ".")
	key, encrypted, err := fscrypt.Of(a.MemberDir(id))
	state := fscrypt.Present
	if err == nil && encrypted {
		c.Encrypted = true
		state, err = fscrypt.KeyState(a.MemberDir(id), key)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return c, false
	case err != nil:
		c.Unsettled = "it cannot be known whether its directory is locked: " + err.Error()
		return c, true
	case state != fscrypt.Present:
		return h.unsealed(ctx, c, key)
	}
	delete(h.sealed, id)
	return h.inspector.Inspect(ctx, c)
}

// ReportOf is what was seen of a member last; not known: nobody looked yet.
func (a *Agent) ReportOf(id string) (r member.Report, known bool) {
	m := a.Find(id)
	if m == nil {
		return r, false
	}
	r = m.publisher.newest()
	return r, r.ID != ""
}
