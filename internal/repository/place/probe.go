package place

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"howdah/internal/repository/store"
)

// ProbePrefix begins the keys of all that probes write. No database has that id.
const ProbePrefix = "howdah-probe/"

// Probe is an object that one party writes and all others read. So they know that they see the same
// place, not several that look alike.
type Probe struct {
	Key     string `json:"key"`
	Content string `json:"content"`
}

// first is the name of the party that begins.
const first = "control"

// Begin writes a probe, reads it again and lists it.
func Begin(ctx context.Context, s store.Store) (Probe, error) {
	p := Probe{Key: ProbePrefix + random(8) + "/" + first, Content: random(64)}
	if err := p.write(ctx, s, p.Key); err != nil {
		return p, err
	}
	return p, p.read(ctx, s, p.Key)
}

func random(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic("place: no randomness: " + err.Error())
	}
	return hex.EncodeToString(b)
}

// ErrElsewhere says that two parties see different places.
var ErrElsewhere = errors.New("what one writes the other does not see")

// ErrProbe says that somebody asks for what is no probe.
var ErrProbe = errors.New("this is no probe")

// Answer does what another party, such as a host, is asked to do: it reads the probe, and writes an
// object of its own beside it.
func (p Probe) Answer(ctx context.Context, s store.Store, name string) error {
	dir, found := strings.CutSuffix(p.Key, "/"+first)
	if !found || !strings.HasPrefix(dir, ProbePrefix) || strings.Contains(dir[len(ProbePrefix):], "/") || strings.Contains(name, "/") || len(p.Content) > 1024 {
		return ErrProbe
	}
	if err := p.read(ctx, s, p.Key); err != nil {
		return err
	}
	return p.write(ctx, s, p.of(name))
}

// Answered looks whether the answer of another party is there.
func (p Probe) Answered(ctx context.Context, s store.Store, name string) error {
	return p.read(ctx, s, p.of(name))
}

func (p Probe) of(name string) string { return strings.TrimSuffix(p.Key, first) + "host-" + name }

// End removes the probe and all answers to it.
func (p Probe) End(ctx context.Context, s store.Store) error {
	prefix := strings.TrimSuffix(p.Key, first)
	for {
		page, err := s.List(ctx, store.Query{Prefix: prefix, Max: store.MaxList})
		if err != nil {
			return fmt.Errorf("list the probe: %w", err)
		}
		if len(page.Objects) == 0 {
			return nil
		}
		keys := make([]string, len(page.Objects))
		for i, o := range page.Objects {
			keys[i] = o.Key
		}
		if err := s.Delete(ctx, keys...); err != nil {
			return fmt.Errorf("delete the probe: %w", err)
		}
	}
}

func (p Probe) write(ctx context.Context, s store.Store, key string) error {
	if _, err := s.Put(ctx, key, strings.NewReader(p.Content)); err != nil {
		return fmt.Errorf("write a probe: %w", err)
	}
	return nil
}

// read looks whether an object is there with the content, and in a list, too.
func (p Probe) read(ctx context.Context, s store.Store, key string) error {
	body, _, err := s.Get(ctx, key, 0, -1)
	if errors.Is(err, store.ErrNotFound) {
		return ErrElsewhere
	}
	if err != nil {
		return fmt.Errorf("read the probe: %w", err)
	}
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, 4096))
	if err != nil {
		return fmt.Errorf("read the probe: %w", err)
	}
	if string(text) != p.Content {
		return ErrElsewhere
	}
	page, err := s.List(ctx, store.Query{Prefix: key, Max: 1})
	if err != nil {
		return fmt.Errorf("list the probe: %w", err)
	}
	if len(page.Objects) != 1 || page.Objects[0].Key != key {
		return fmt.Errorf("list the probe: it is not in the list: %w", ErrElsewhere)
	}
	return nil
}
