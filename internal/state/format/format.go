// Package format has the number that says how the records of a home are written. A program drops
// the fields that it does not know when it decodes a record, and they are lost when it writes the
// record back. A release may have a field that must not be lost. Then it raises the number, once
// every part of the home reads that number: control planes, agents and edges say which number they
// read. A program that meets a larger number than it reads changes nothing: docs/design/formats.md.
package format

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/state"
)

// Newest is the number that this release reads, and that it writes once all parts of the home read
// it. Releases that knew no number wrote 0. 1 has the same records, and keeps those releases out. 2
// has restored databases, and clones: a release before would begin one without its data.
const Newest = 2

// Record is the number of a home. Control planes write it, and only ever write a larger one.
type Record struct {
	Format int `json:"format"`
	// Release is the version that wrote the number first. That version reads it.
	Release string    `json:"release"`
	At      time.Time `json:"at"`
}

// Said is what a control plane says about records, among all that it says of itself. Hosts and
// edges may read this. Where a control plane of an older release lets them in, they may not read
// the number itself.
type Said struct {
	// Reads is the newest format that it reads. 0 says that its release knew no number.
	Reads int `json:"reads,omitempty"`
	// Format is the number that the home had at that time. Release wrote it first.
	Format  int    `json:"format,omitempty"`
	Release string `json:"release,omitempty"`
}

// Heard returns the number of a home, by what its control planes say.
func Heard(cache *state.Cache) (newest Record) {
	for _, m := range state.LoadAll[Said](cache, state.ControlRoot) {
		if m.Value.Format > newest.Format {
			newest = Record{Format: m.Value.Format, Release: m.Value.Release}
		}
	}
	return newest
}

// ErrNewer says that the records of the home are of a newer release than this program.
var ErrNewer = errors.New("the records of this home are of a newer release")

// Check returns ErrNewer for a number that this program does not read. own is the program's
// release.
func (r Record) Check(own string) error {
	if r.Format <= Newest {
		return nil
	}
	return fmt.Errorf("%w: they have format %d, and howdah %s reads %d: start howdah %s or newer", ErrNewer, r.Format, own, Newest, r.Release)
}

// Read reads the number as the member of etcd knows it that is asked, and needs no majority. A home
// without a number is at 0.
func Read(ctx context.Context, client *clientv3.Client) (r Record, err error) {
	ctx, cancel := state.Within(ctx)
	defer cancel()
	answer, err := client.Get(ctx, state.HomeFormat, clientv3.WithSerializable())
	if err != nil {
		return r, fmt.Errorf("read the format of the home's records: %w", err)
	}
	if len(answer.Kvs) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(answer.Kvs[0].Value, &r); err != nil {
		return r, fmt.Errorf("read the format of the home's records: %w", err)
	}
	return r, nil
}

// Of returns Read for one client.
func Of(client *clientv3.Client) func(context.Context) (Record, error) {
	return func(ctx context.Context) (Record, error) { return Read(ctx, client) }
}

// Raise writes Newest if the home still has the number that was read. A larger number that somebody
// else wrote meanwhile stays. leading is the condition that the caller leads. A caller that does not
// lead any more may not know of a part that has come since, and gets state.ErrConflict.
func Raise(ctx context.Context, s *state.Store, leading state.Op, release string, now time.Time) error {
	old, err := state.Get[Record](ctx, s, state.HomeFormat)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if old.Value.Format >= Newest {
		return nil
	}
	_, err = s.Commit(ctx, state.Swap(state.HomeFormat, old.Revision, Record{Format: Newest, Release: release, At: now.UTC()}), leading)
	return err
}
