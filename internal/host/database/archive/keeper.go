// Package archive lets the members of a host into repositories. A member reaches only the gateway of
// its host, with a key of its own, which opens its own database's part and nothing else. What opens
// the repository itself comes from a control plane, and is kept in files of root's: archiving goes
// on without a control plane, also when the agent is started again.
package archive

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/agent"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/pace"
	"howdah/internal/model/member"
	"howdah/internal/repository/gateway"
	"howdah/internal/repository/store"
	"howdah/internal/system/plainfile"
)

const (
	// ownDir is below the host's directory, and root's alone.
	ownDir  = "archive"
	keysDir = "keys"

	// askTimeout bounds one control plane's answer, askAgain is the pause after none has answered,
	// and askAnew is how long an answer is good for, as places and logins of repositories change.
	askTimeout = 3 * time.Second
	askAgain   = time.Second
	askAnew    = 5 * time.Minute
)

// ErrAwaited says that no control plane has told yet what opens a repository.
var ErrAwaited = errors.New("no control plane has told yet what opens the repository")

// Part is what a holder may reach.
type Part struct {
	Database   string `json:"database"`
	Repository string `json:"repository"`
	ReadOnly   bool   `json:"read_only,omitempty"`
}

// Keeper has the keys of all who reach repositories from this host. Holders are named: a member by
// its id, anybody else by a name that has a slash. Those others are let in by one agent, and the next
// one does not know them.
type Keeper struct {
	Agent *agent.Agent
	// Wrote is told of every object that was written, with the key of the object in the
	// repository. Opened is told of each holder that Known has kept waiting, once all is known.
	// Backed is told of each backup that was made here. All are set before Begin.
	Wrote  func(repository, database, key string)
	Opened func(holder string)
	Backed func(database string)

	gateway *gateway.Gateway
	wake    chan struct{}
	// fetch asks control planes.
	fetch func(context.Context, Part) (member.Repository, error)

	mu      sync.Mutex
	port    int                // of the gateway; guarded by mu, as all below
	holders map[string]*holder // by name
	stores  map[string]opened  // by repository
	failed  map[string]error   // by repository: why it could not be opened, or written to last
	asked   map[Part]time.Time // when control planes were asked, in this life of the agent
	refused map[string]error   // why a holder is not told, by its name
	places  map[string]backup.Place
}

// holder is what is kept of one.
type holder struct {
	Name   string  `json:"name"`
	Key    string  `json:"key"`
	Secret string  `json:"secret"`
	Parts  []grant `json:"parts"`
	// waits says that Opened is to be told.
	waits bool
}

// grant is a part with what opens it; nil: nobody has told yet.
type grant struct {
	Part
	Access *member.Repository `json:"access,omitempty"`
}

// New returns a keeper, which knows whom it let in before.
func New(a *agent.Agent) (*Keeper, error) {
	k := &Keeper{
		Agent: a, wake: make(chan struct{}, 1), holders: map[string]*holder{}, stores: map[string]opened{},
		failed: map[string]error{}, asked: map[Part]time.Time{}, refused: map[string]error{}, places: map[string]backup.Place{},
	}
	k.fetch = k.fetchAny
	k.gateway = gateway.New(gateway.Config{Log: a.Log, Written: k.written, Failed: k.fails})
	return k, k.load()
}

func (k *Keeper) dir(parts ...string) string {
	return k.Agent.Path(append([]string{ownDir}, parts...)...)
}

func (k *Keeper) load() error {
	if err := os.MkdirAll(k.dir(keysDir), 0o700); err != nil {
		return fmt.Errorf("make the directory of keys to repositories: %w", err)
	}
	files, err := filepath.Glob(k.dir(keysDir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range files {
		text, err := plainfile.Read(path)
		if err != nil {
			return err
		}
		var h holder
		if err := json.Unmarshal(text, &h); err != nil || k.path(h.Name) != path {
			k.Agent.Log.Error("a key to repositories cannot be read, and is made anew", "file", path, "error", err)
			continue
		}
		if strings.Contains(h.Name, "/") {
			// Nobody may come to dismiss it: what it was for may be over. Whoever goes on is admitted anew.
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("forget the key of %s: %w", h.Name, err)
			}
			continue
		}
		k.letIn(&h)
	}
	return nil
}

func (k *Keeper) path(holder string) string {
	return k.dir(keysDir, url.PathEscape(holder)+".json")
}

// Known returns how a holder reaches parts, or ErrAwaited; then Opened is told later. It does not
// wait. CAFile of what it returns is not set.
func (k *Keeper) Known(name string, parts ...Part) ([]backup.Access, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h, err := k.admit(name, parts)
	if err != nil {
		return nil, err
	}
	all, err := k.accesses(h)
	if err != nil {
		h.waits = true
		k.nudge()
	}
	return all, err
}

// Admit does what Known does, and waits until a control plane has told what opens the repositories,
// or has refused to.
func (k *Keeper) Admit(ctx context.Context, name string, parts ...Part) ([]backup.Access, error) {
	for {
		all, err := k.Known(name, parts...)
		if !errors.Is(err, ErrAwaited) {
			return all, err
		}
		k.mu.Lock()
		refused := k.refused[name]
		k.mu.Unlock()
		if refused != nil && errors.Is(refused, hostapi.ErrRefused) {
			return nil, refused
		}
		if !pace.Sleep(ctx, askAgain/5) {
			return nil, errors.Join(err, refused, ctx.Err())
		}
	}
}

// SetPlace keeps the place of a member, whose files are written.
func (k *Keeper) SetPlace(id string, place backup.Place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.places[id] = place
}

// Place returns the place of a member, whose files are written, or ErrAwaited: nobody has told yet
// what opens its repositories, or it has not come to write its files since the agent was started.
func (k *Keeper) Place(id string) (backup.Place, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	place, ok := k.places[id]
	if !ok {
		return backup.Place{}, fmt.Errorf("%w of %s", ErrAwaited, id)
	}
	return place, nil
}

// CA returns the certificates, as PEM, that sign the gateway's.
func (k *Keeper) CA() []byte { return k.Agent.Identity.Pair().CAPEM }

// Dismiss forgets a holder, whose key opens nothing any more.
func (k *Keeper) Dismiss(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.holders[name]; h != nil {
		k.gateway.RemoveKey(h.Key)
	}
	delete(k.holders, name)
	delete(k.refused, name)
	delete(k.places, name)
	if err := os.Remove(k.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget the key of %s: %w", name, err)
	}
	return nil
}

// admit has a holder with these parts. mu is held.
func (k *Keeper) admit(name string, parts []Part) (*holder, error) {
	h := k.holders[name]
	if h != nil && slices.EqualFunc(h.Parts, parts, func(g grant, p Part) bool { return g.Part == p }) {
		return h, nil
	}
	next := &holder{Name: name, Key: rand.Text()[:20], Secret: rand.Text() + rand.Text()}
	if h != nil {
		next.Key, next.Secret = h.Key, h.Secret
	}
	for _, p := range parts {
		g := grant{Part: p}
		if h != nil {
			for _, old := range h.Parts {
				if old.Database == p.Database && old.Repository == p.Repository {
					g.Access = old.Access
				}
			}
		}
		next.Parts = append(next.Parts, g)
	}
	if err := k.keep(next); err != nil {
		return nil, err
	}
	delete(k.refused, name)
	return next, nil
}

// keep writes a holder down, and lets it in. mu is held.
func (k *Keeper) keep(h *holder) error {
	text, err := json.Marshal(h)
	if err == nil {
		err = plainfile.Replace(k.path(h.Name), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep the key of %s: %w", h.Name, err)
	}
	k.letIn(h)
	return nil
}

// letIn has the gateway let a holder in. mu is held, or nobody else knows the keeper.
func (k *Keeper) letIn(h *holder) {
	k.holders[h.Name] = h
	var grants []gateway.Grant
	for _, g := range h.Parts {
		if g.Access != nil {
			grants = append(grants, gateway.Grant{Repository: g.Repository, Database: g.Database, ReadOnly: g.ReadOnly})
		}
	}
	k.gateway.SetKey(h.Key, h.Secret, grants)
}

// accesses is how a holder reaches its parts. mu is held.
func (k *Keeper) accesses(h *holder) ([]backup.Access, error) {
	var all []backup.Access
	for _, g := range h.Parts {
		if g.Access == nil {
			return nil, fmt.Errorf("%w %s", ErrAwaited, g.Repository)
		}
		all = append(all, backup.Access{
			Name: g.Repository, Endpoint: "https://" + net.JoinHostPort(k.Agent.Address, fmt.Sprint(k.port)), Bucket: g.Repository,
			Key: h.Key, Secret: h.Secret, Path: "/" + g.Database, Passphrase: g.Access.Passphrase,
		})
	}
	return all, nil
}

// Why says what stands in the way of a holder, or "": that it is not told what opens its
// repositories, or what was wrong when one was written to last.
func (k *Keeper) Why(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.holders[name]
	if h == nil {
		return ""
	}
	if _, err := k.accesses(h); err != nil {
		if refused := k.refused[name]; refused != nil {
			err = refused
		}
		return err.Error()
	}
	for _, g := range h.Parts {
		if why := k.whyNot(g); why != "" {
			return fmt.Sprintf("repository %s: %s", g.Repository, why)
		}
	}
	return ""
}

// whyNot says what is wrong with a repository, or "". mu is held.
func (k *Keeper) whyNot(g grant) string {
	err := k.failed[g.Repository]
	switch {
	case err == nil:
		return ""
	case errors.Is(err, store.ErrFull):
		return fmt.Sprintf("it is full: make room there, or lower the retention of backups (%v)", err)
	case errors.Is(err, store.ErrReadOnly):
		return fmt.Sprintf("it cannot be written to: mount it for writing, or give its login the right to write (%v)", err)
	case errors.Is(err, store.ErrAway) && g.Access.Path != "" && !errors.Is(err, gateway.ErrMute):
		return fmt.Sprintf("the directory %s is not the repository: mount it on this host (%v)", g.Access.Path, err)
	default:
		return err.Error()
	}
}

func (k *Keeper) nudge() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run asks control planes for what opens repositories, and opens them, until ctx ends.
func (k *Keeper) run(ctx context.Context) error {
	for {
		pause := askAnew / 5
		if told, open := k.ask(ctx), k.openAll(ctx); !told || !open {
			pause = askAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-time.After(pause):
		}
	}
}

// ask asks for all that is not known, or was told long ago. It returns false if it has to be asked
// again soon.
func (k *Keeper) ask(ctx context.Context) (done bool) {
	done = true
	for _, name := range k.due() {
		if err := k.askFor(ctx, name); err != nil {
			done = false
			if ctx.Err() == nil {
				k.Agent.Log.Info("ask what opens a repository", "holder", name, "error", err)
			}
		}
	}
	return done
}

// due lists the holders that are to be asked for.
func (k *Keeper) due() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, h := range k.holders {
		if slices.ContainsFunc(h.Parts, func(g grant) bool { return g.Access == nil || time.Since(k.asked[g.Part]) >= askAnew }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (k *Keeper) askFor(ctx context.Context, name string) error {
	k.mu.Lock()
	h := k.holders[name]
	k.mu.Unlock()
	if h == nil {
		return nil
	}
	next := *h
	next.Parts = slices.Clone(h.Parts)
	var errs []error
	for n, g := range next.Parts {
		access, err := k.fetch(ctx, g.Part)
		if err == nil {
			next.Parts[n].Access = &access
			continue
		}
		if g.Access == nil {
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range next.Parts {
		// Without an answer what was told before holds, and is asked for again later.
		k.asked[g.Part] = time.Now()
	}
	if k.holders[name] != h {
		return nil // it has other parts now, and its turn comes
	}
	if k.refused[name] = err; err == nil {
		delete(k.refused, name)
	}
	if keepErr := k.keep(&next); keepErr != nil {
		return errors.Join(err, keepErr)
	}
	if err == nil && next.waits {
		next.waits = false
		go k.Opened(name)
	}
	return err
}

// fetchAny asks one control plane after the other.
func (k *Keeper) fetchAny(ctx context.Context, p Part) (member.Repository, error) {
	last := fmt.Errorf("%w %s", ErrAwaited, p.Repository)
	for _, c := range k.Agent.Controls() {
		limited, cancel := context.WithTimeout(ctx, askTimeout)
		access, err := c.Repository(limited, p.Database, p.Repository)
		cancel()
		if err == nil && strings.Contains(access.Name, "/") {
			err = fmt.Errorf("%w: its name is %q", ErrAwaited, access.Name)
		}
		if err == nil {
			return access, nil
		}
		last = fmt.Errorf("ask what opens repository %s: %w", p.Repository, err)
		if errors.Is(err, hostapi.ErrRefused) {
			break
		}
	}
	return member.Repository{}, last
}
