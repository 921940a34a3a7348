// Package gate decides about every promotion. Patroni runs the gate as its pre_promote when it has
// the leader key, and promotes the member only if the gate lets it through. The gate works in four
// steps (docs/design/availability.md, Fences):
//   - It reads from etcd which primary led before, and with which standbys.
//   - It counts which of these can confirm nothing to that primary any more.
//   - It asks those for their positions.
//   - It lets its own member through if that one has every acknowledged commit and no further
//     commit can be acknowledged.
//
// The gate needs no agent, no judge and no clock. It may be killed at any moment. Until it has
// written its consent nothing has happened, and what it writes is true whether or not the promotion
// follows.
package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/failover/fence"
)

// ErrRefused says that the member must not be promoted now.
var ErrRefused = errors.New("the promotion is refused")

// Config is what a gate depends on. All of it is required except DataDir and
// Patience.
type Config struct {
	Database, Name string // the database, and its member that wants to be promoted
	// PatroniName is what Patroni calls the member, and writes into the leader key.
	PatroniName string
	Client      *clientv3.Client
	// Ask asks the Patroni at a URL for its member's current position.
	Ask func(ctx context.Context, url string) (Position, error)
	// Received asks the PostgreSQL at an address where the WAL of that member ends now.
	Received func(ctx context.Context, address string) (int64, error)
	// Own is the URL of the Patroni of the member that wants to be promoted.
	Own string
	// DataDir is the data directory of the member that wants to be promoted. If it is "", no timeline
	// is taken for the promotion.
	DataDir string
	// Patience is how long the gate waits for the count to become enough before it refuses.
	Patience time.Duration
	Log      *slog.Logger
}

// Command is the command of howdah that runs a gate.
const Command = "gate"

// DefaultPatience is long enough for the judge to see the plea and for hosts to cut. Meanwhile
// Patroni keeps the leader key and renews it.
const DefaultPatience = 10 * time.Second

const (
	// look is the time between two looks of a gate that waits.
	look = 25 * time.Millisecond
	// callTimeout bounds one call of etcd.
	callTimeout = 3 * time.Second
)

// Pass returns nil if the member may be promoted now. It returns an error that wraps ErrRefused if
// the member must not be, and another error if that cannot be known.
func Pass(ctx context.Context, cfg Config) error {
	g := &gate{Config: cfg}
	deadline := time.Now().Add(cfg.Patience)
	for {
		f, err := g.read(ctx)
		if err != nil {
			return err
		}
		v := g.count(ctx, f)
		if v.may && f.old.Leader != "" && f.old.Leader != g.Name {
			why, err := g.whole(ctx, f)
			if err != nil {
				return err
			}
			if why != "" {
				v = verdict{why: why}
			}
		}
		if v.may {
			err = g.consent(ctx, f, v)
			if err == nil {
				g.Log.Info("promotion passes the gate", "why", v.why)
				return nil
			}
			v.why, v.final = err.Error(), !errors.Is(err, errMoved)
		}
		if v.final || time.Now().After(deadline) {
			return g.refuse(ctx, f, v)
		}
		g.plead(ctx, f, v)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
}

type gate struct {
	Config
	pleaded string // the reason and the members of the last plea
}

// verdict is the result of one count.
type verdict struct {
	may     bool
	final   bool // waiting does not help
	why     string
	missing []string // members that would have to be cut off
	// conditions must still hold when consent is given.
	conditions []clientv3.Cmp
}

// count finds out once whether the member may be promoted.
func (g *gate) count(ctx context.Context, f facts) verdict {
	old := f.old
	switch {
	case f.leader != g.Name:
		return verdict{final: true, why: fmt.Sprintf("the leader key is %s's", quoted(f.leader))}
	case f.strange:
		return verdict{final: true, why: "the home was restored, and has not taken " + g.Database + " over"}
	case old.Leader == "":
		return verdict{may: true, why: "no primary had synchronous standbys"}
	case f.unsettled(g.Name) != "":
		return verdict{final: true, why: f.unsettled(g.Name) + " was let through last, and alone may have the newest acknowledged writes"}
	case old.Leader == g.Name:
		return verdict{may: true, why: "it was the primary before"}
	case len(old.Standbys) == 0:
		return verdict{final: true, why: "no standby was in sync with " + old.Leader + ", which alone has every acknowledged write"}
	case fence.Enough(old, g.Name, nil):
		return verdict{may: true, why: "it leaves " + old.Leader + ", which can acknowledge nothing without it"}
	}
	fenced, conditions := f.fenced(old)
	if !fence.Enough(old, g.Name, fenced) {
		v := verdict{missing: fence.Unfenced(old, g.Name, fenced)}
		v.why = fmt.Sprintf("%s may still acknowledge writes that %s confirms", old.Leader, strings.Join(v.missing, " or "))
		v.final = f.another(g.Name)
		return v
	}
	level, others := g.compare(ctx, f, slices.DeleteFunc(fenced, func(m string) bool { return m == g.Name }))
	if !fence.Enough(old, g.Name, level) {
		text := strings.Join(others, ", ")
		return verdict{why: "others may have what it has not: " + text, final: strings.Contains(text, ahead)}
	}
	return verdict{may: true, conditions: conditions, why: fmt.Sprintf("%s can acknowledge nothing, and nobody is ahead: %s", old.Leader, strings.Join(level, ", "))}
}

// ahead marks a standby that has more WAL: that one must be promoted, and this gate refuses.
const ahead = " is ahead of it"

// compare asks all given standbys for their positions at the same time. level names those that
// are not ahead of the gate's own member; others says of each other one why it does not count.
func (g *gate) compare(ctx context.Context, f facts, members []string) (level, others []string) {
	at := make([]Position, len(members))
	errs := make([]error, len(members))
	var own Position
	var ownErr error
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { at[i], errs[i] = g.askAnother(ctx, f.places[m]) })
	}
	// The own member may have more WAL than it reports; that does no harm.
	all.Go(func() { own, ownErr = g.Ask(ctx, g.Own) })
	all.Wait()
	if ownErr == nil && own.Silent {
		ownErr = errNoPosition
	}
	if ownErr != nil {
		return nil, []string{"its own position is not known: " + ownErr.Error()}
	}
	for i, m := range members {
		switch {
		case errs[i] == nil && !at[i].Silent && !at[i].Recovery:
			others = append(others, m+" takes writes")
		case at[i].OnDisk > 0 && at[i].OnDisk < own.Timeline:
			// It never had WAL of this timeline. What it has of older ones is in the history
			// that the own member follows, or was never acknowledged.
			level = append(level, m)
		case errors.Is(errs[i], errReplays):
			others = append(others, m+" was started a moment ago, and replays")
		case errs[i] != nil || at[i].Silent:
			others = append(others, m+" does not answer")
		case at[i].Timeline > own.Timeline || at[i].LSN > own.LSN:
			others = append(others, m+ahead)
		default:
			level = append(level, m)
		}
	}
	return level, others
}

// askAnother asks Patroni and PostgreSQL of another member.
func (g *gate) askAnother(ctx context.Context, at place) (Position, error) {
	var received int64
	var err error
	var both sync.WaitGroup
	both.Go(func() { received, err = g.Received(ctx, at.postgres) })
	p, askErr := g.Ask(ctx, at.api)
	both.Wait()
	if askErr != nil || p.Silent || !p.Recovery {
		return p, askErr
	}
	p.LSN = max(p.LSN, received)
	return p, err
}

func quoted(name string) string {
	if name == "" {
		return "nobody"
	}
	return name
}
