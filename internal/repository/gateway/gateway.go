// Package gateway lets members reach their own part of a repository, and no other, by S3's protocol.
//
// The gateway speaks that part of S3 which programs that back databases up use: objects, ranges,
// lists, uploads in parts. A repository is a bucket: a request for /REPOSITORY/DATABASE/… is let in
// if its access key has a grant for that database. No member sees what opens the repository.
//
// Invariants: what a member may not reach is neither read, written nor named in an answer. An object
// that a member was told of is in the store, and is what the member signed. No request makes the
// gateway hold more than a small, fixed amount of memory. Who was told that an object is not there does
// not replace it, should it be there by then.
package gateway

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"howdah/internal/repository/store"
)

// Grant lets an access key into the part of one database in a repository.
type Grant struct {
	Repository string
	Database   string // resource id
	ReadOnly   bool
}

// Object is one that was written.
type Object struct {
	AccessKey  string
	Repository string
	Database   string
	// Key is the whole key in the repository, which begins with the database and a slash.
	Key  string
	Size int64
}

// Config is what a gateway needs. Zero values stand for what is usual.
type Config struct {
	Log *slog.Logger
	// Written is told of every object after it is safely stored, and before the client is. It may
	// be called several times at once, and must not wait for long.
	Written func(Object)
	// Failed is told of every request that a repository could not do, with one of store.ErrFull,
	// ErrReadOnly, ErrAway, or an unexpected error. Like Written.
	Failed func(repository string, err error)
	// Now is the clock.
	Now func() time.Time
	// MaxObject is the size of the largest object in bytes; 0: 64 GiB.
	MaxObject int64
	// PerKey is how many requests of one access key may be under way; 0: 64. Total is how many of
	// all may be; 0: 512.
	PerKey, Total int
	// WritesPerKey is how many bodies of one access key may be on their way; 0: 24.
	WritesPerKey int
	// UploadsPerKey is how many uploads one access key may have begun and not ended; 0: 256.
	UploadsPerKey int
	// Stall is how long a client may take for a small part of a body; 0: one minute. A whole body
	// may take that, and a second for each 64 KiB.
	Stall time.Duration
	// Mute is how long a repository may say nothing until a client that leaves has left for that; 0:
	// ten seconds. Failed is told store.ErrAway then.
	Mute time.Duration
	// Abandoned is the age at which what is not whole is removed; 0: one day.
	Abandoned time.Duration
}

// Usual limits.
const (
	usualMaxObject = 64 << 30
	usualPerKey    = 64
	usualTotal     = 512
	usualWrites    = 24
	usualUploads   = 256
	usualStall     = time.Minute
	usualMute      = 10 * time.Second
	usualAbandoned = 24 * time.Hour
	sweepEvery     = time.Hour
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeader      = 32 << 10
)

func (c *Config) complete() {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Written == nil {
		c.Written = func(Object) {}
	}
	if c.Failed == nil {
		c.Failed = func(string, error) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	setDefault(&c.MaxObject, usualMaxObject)
	setDefault(&c.PerKey, usualPerKey)
	setDefault(&c.Total, usualTotal)
	setDefault(&c.WritesPerKey, usualWrites)
	setDefault(&c.UploadsPerKey, usualUploads)
	setDefault(&c.Stall, usualStall)
	setDefault(&c.Mute, usualMute)
	setDefault(&c.Abandoned, usualAbandoned)
}

func setDefault[T int | int64 | time.Duration](value *T, usual T) {
	if *value == 0 {
		*value = usual
	}
}

// holder is who has an access key.
type holder struct {
	secret   string
	grants   []Grant
	underWay int
	writes   int
	lists    int // bodies that are held in memory
	uploads  int
	// absent has objects, as REPOSITORY/KEY, that the holder was told are not there.
	absent map[string]bool
}

// Gateway is an http.Handler. All methods may be called at the same time.
type Gateway struct {
	config Config

	// mu guards what follows.
	mu           sync.Mutex
	repositories map[string]store.Store
	holders      map[string]*holder
	uploads      map[uploadKey]*upload
	underWay     int
	lists        int
}

// New returns a gateway that lets nobody in.
func New(config Config) *Gateway {
	config.complete()
	return &Gateway{
		config: config, repositories: map[string]store.Store{}, holders: map[string]*holder{}, uploads: map[uploadKey]*upload{},
	}
}

// SetRepository has requests for a repository go to that store. Requests under way end with the
// store that they began with.
func (g *Gateway) SetRepository(name string, s store.Store) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.repositories[name] = s
}

// RemoveRepository ends access to a repository.
func (g *Gateway) RemoveRepository(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.repositories, name)
}

// SetKey lets an access key in, with these grants in place of those that it had.
func (g *Gateway) SetKey(accessKey, secret string, grants []Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h := g.holders[accessKey]
	if h == nil {
		h = &holder{}
		g.holders[accessKey] = h
	}
	h.secret, h.grants = secret, slices.Clone(grants)
}

// RemoveKey lets an access key in no more. Requests under way go on.
func (g *Gateway) RemoveKey(accessKey string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.holders, accessKey)
}

// Server returns a server with the limits that a gateway needs. The caller sets TLSConfig, and
// calls ServeTLS.
func (g *Gateway) Server() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: g, Protocols: protocols, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(g.config.Log.Handler(), slog.LevelDebug),
	}
}

// Run removes what was left half done, now and every hour, until the context ends.
func (g *Gateway) Run(ctx context.Context) error {
	for {
		g.sweep(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepEvery):
		}
	}
}

func (g *Gateway) sweep(ctx context.Context) {
	before := g.config.Now().Add(-g.config.Abandoned)
	g.forgetUploads(before)
	g.mu.Lock()
	all := make(map[string]store.Store, len(g.repositories))
	for name, s := range g.repositories {
		all[name] = s
	}
	g.mu.Unlock()
	for name, s := range all {
		if err := s.Sweep(ctx, before); err != nil && ctx.Err() == nil {
			g.config.Log.Warn("what was left half done cannot be removed", "repository", name, "error", err)
		}
	}
}

// enter counts a request, and returns false if there are too many.
func (g *Gateway) enter(h *holder) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h.underWay >= g.config.PerKey || g.underWay >= g.config.Total {
		return false
	}
	h.underWay++
	g.underWay++
	return true
}

func (g *Gateway) leave(h *holder) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.underWay--
	g.underWay--
}

// What requests hold in memory: bodies with lists of objects or parts.
const (
	maxLists       = 32
	maxListsPerKey = 4
)

// take counts a body of a holder, which is a list that is held in memory or is passed on. It returns
// false if there are too many.
func (g *Gateway) take(h *holder, list bool) (release func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if list && (h.lists >= maxListsPerKey || g.lists >= maxLists) || !list && h.writes >= g.config.WritesPerKey {
		return nil, false
	}
	add := func(n int) {
		if list {
			h.lists, g.lists = h.lists+n, g.lists+n
		} else {
			h.writes += n
		}
	}
	add(1)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		add(-1)
	}, true
}

// holder returns who has an access key, and its secret.
func (g *Gateway) holder(accessKey string) (h *holder, secret string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h = g.holders[accessKey]
	if h == nil {
		return nil, "", false
	}
	return h, h.secret, true
}

// allow returns the store of a repository if the holder may do that below a key or prefix. The key
// must be inside a database's part: the name of the part and a slash.
func (g *Gateway) allow(h *holder, repository, key string, write bool) (s store.Store, database string, err error) {
	database, rest, inside := strings.Cut(key, "/")
	g.mu.Lock()
	defer g.mu.Unlock()
	s = g.repositories[repository]
	may := slices.ContainsFunc(h.grants, func(grant Grant) bool {
		return inside && grant.Repository == repository && grant.Database == database && database != "" && (!write || !grant.ReadOnly)
	})
	switch {
	case !may || write && ours(rest):
		return nil, "", errDenied
	case s == nil:
		return nil, "", errUnknownRepository
	}
	return s, database, nil
}

// ourPart is the part of a database in which Howdah keeps what members may not change.
const ourPart = "howdah"

func ours(rest string) bool { return rest == ourPart || strings.HasPrefix(rest, ourPart+"/") }

// knows reports whether the holder has any grant in a repository.
func (g *Gateway) knows(h *holder, repository string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.ContainsFunc(h.grants, func(grant Grant) bool { return grant.Repository == repository })
}

// failed tells of what a repository could not do.
func (g *Gateway) failed(repository string, err error) {
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrName), errors.Is(err, store.ErrPart), errors.Is(err, context.Canceled):
	default:
		g.config.Failed(repository, err)
	}
}
