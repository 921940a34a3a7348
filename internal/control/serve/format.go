package serve

import (
	"context"
	"errors"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/edge/seen"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/model/zone"
	"howdah/internal/state"
	"howdah/internal/state/format"
	"howdah/internal/view"
)

const (
	// raiseEvery is the pause between two looks whether all parts read the newest format by now.
	raiseEvery = 5 * time.Second
	// followEvery is the pause between two looks at the number of the home. They cost no question to
	// etcd, and what needs the newest format is refused until a control plane has told of it.
	followEvery = time.Second
)

// readable refuses a state whose records this program does not read. It would drop what it does not
// know when it writes them back. Our own member is asked, before anything is written.
func (cfg Config) readable(ctx context.Context, client *clientv3.Client) error {
	r, err := format.Read(ctx, client)
	if err != nil {
		return err
	}
	return r.Check(cfg.Version)
}

// follow ends this control plane once the records are of a newer release. It also tells hosts and
// edges of each new number, and of another DNS zone: they read what control planes say of themselves.
func (cfg Config) follow(ctx context.Context, store *state.Store, cache *state.Cache) error {
	if err := cache.Loaded(ctx); err != nil {
		return nil // it was told to end
	}
	timer := time.NewTicker(followEvery)
	defer timer.Stop()
	var told format.Record
	for named := zone.Zone(""); ; {
		r, err := state.Load[format.Record](cache, state.HomeFormat)
		if err == nil {
			if err := r.Value.Check(cfg.Version); err != nil {
				return err
			}
		}
		if now := view.DNSZone(cache); r.Value.Format != told.Format || now != named {
			if _, err := cfg.introduce(ctx, store, r.Value, now); err == nil {
				told, named = r.Value, now
			} else if ctx.Err() == nil {
				cfg.Log.Warn("tell hosts of the format of the home's records, and of its DNS zone", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

// raiseFormat writes the newest format that this release reads, once every part of the home reads
// it. Only the control plane that leads may call it. leading is the condition of a commit that only
// that one may make.
func (cfg Config) raiseFormat(ctx context.Context, store *state.Store, cache *state.Cache, leading state.Op) error {
	if err := cache.Loaded(ctx); err != nil {
		return nil // it was told to end
	}
	timer := time.NewTicker(raiseEvery)
	defer timer.Stop()
	for {
		if r, err := state.Load[format.Record](cache, state.HomeFormat); err == nil && r.Value.Format >= format.Newest {
			return nil
		}
		if allRead(cache, format.Newest) {
			err := format.Raise(ctx, store, leading, cfg.Version, time.Now())
			switch {
			case err == nil:
				cfg.Log.Info("the home's records have another format from now on", "format", format.Newest)
			case ctx.Err() == nil && !errors.Is(err, state.ErrConflict):
				cfg.Log.Warn("write the format of the home's records", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

// allRead reports whether all control planes, hosts and edges that the home knows have said that
// they read a format. Parts that are away count, too.
func allRead(cache *state.Cache, number int) bool {
	return everyone(cache, state.ControlRoot, func(c *hostapi.ControlMember) bool { return c.Reads >= number }) &&
		everyone(cache, state.HostRoot, func(h *member.Host) bool { return h.Reads >= number }) &&
		everyone(cache, state.EdgeRoot, func(e *seen.Status) bool { return e.Reads >= number })
}

// everyone reports whether such is true of all records below a root. A record that cannot be read
// counts as false.
func everyone[T any](cache *state.Cache, root string, such func(*T) bool) bool {
	records := state.ViewAll[T](cache, root)
	for _, r := range records {
		if !such(r.Value) {
			return false
		}
	}
	return len(records) == len(cache.Keys(root))
}
