package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/repository/store"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

const part = "copy-0123456789abcdef"

// copies begins a copy of a snapshot into the repository far, as the API does.
func (s *site) copies(from, name, region string) string {
	s.t.Helper()
	source := s.shot(from)
	id := "copy-of-" + name
	at := spec.Scope{Account: shop.Account, Region: region}
	key := state.Snapshot(at.Account, at.Region, name)
	v := source
	v.Scope, v.Name, v.State, v.Repository, v.Part, v.Operation, v.Label = at, name, backup.Copying, "far", part, id, ""
	about := operation.About{Scope: at, Type: event.Instance, Name: source.Instance.Name, Database: part}
	r, err := operation.New(id, backup.Copy, about, backup.CopyArgs{
		Snapshot: key, Repository: "far", Source: backup.PartRef{Database: source.Holder(), Repository: source.Repository}, Label: source.Label,
		From: from, Region: source.Region,
	}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(state.Put(state.Repository("far"), backup.Repository{Name: "far", Copies: true}), state.Swap(state.Operation(id), 0, r), state.Swap(key, 0, v))
	return id
}

// drops deletes a snapshot, as the API does.
func (s *site) drops(region, name string) {
	s.t.Helper()
	s.put(state.Delete(state.Snapshot(shop.Account, region, name)))
}

func (s *site) shotIn(region, name string) backup.Snapshot {
	r, err := state.Load[backup.Snapshot](s.cache, state.Snapshot(shop.Account, region, name))
	if err != nil {
		return backup.Snapshot{}
	}
	return r.Value
}

// uncopied reports whether nothing of the copy is known.
func (s *site) uncopied() bool {
	_, _, there := s.cache.Raw(state.BackupPart(part, "far"))
	return !there && len(s.cache.Keys(state.BackupPrefix(part))) == 0
}

func TestACopyIsAvailableWhenItIsWhole(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "first", backup.Take, nil), operation.Done)
	c.ends(c.snapshot(i, "second", backup.Take, nil), operation.Done)
	source := c.shot("second")
	c.ends(c.copies("second", "twin", "eu-west-1"), operation.Done)
	got := c.shotIn("eu-west-1", "twin")
	if got.State != backup.Available || got.Label != source.Label || got.Part != part || got.Repository != "far" || got.Stored != 77 || got.Size != source.Size || got.Done.IsZero() {
		t.Errorf("%+v", got)
	}
	asked := c.yard.copied[0]
	if asked.Database != part || asked.Source != (backup.PartRef{Database: i.ResourceID, Repository: "main"}) || asked.Backup.Label != source.Label ||
		len(asked.Backup.Needs) != 1 || asked.Note.Snapshot.State != backup.Available || asked.Note.Backup.Database != part {
		t.Errorf("asked for %+v", asked)
	}
	held, err := state.Load[backup.Backup](c.cache, state.Backup(part, "far", source.Label))
	if err != nil || held.Value.CopyOf != i.ResourceID+"/main/"+source.Label || !held.Value.Alone || held.Value.Automated || held.Value.Stored != 77 {
		t.Errorf("%+v, %v", held.Value, err)
	}
	if c.events("twin") != "0060" {
		t.Errorf("events %q", c.events("twin"))
	}
	// It needs nothing of what it is a copy of.
	c.drops(shop.Region, "first")
	c.drops(shop.Region, "second")
	c.put(state.Delete(state.Instance(shop.Account, shop.Region, "orders")), state.Delete(state.Layout(i.ResourceID)), state.Delete(state.Repository("main")))
	c.pass(25 * time.Hour)
	c.round()
	if c.uncopied() || slices.ContainsFunc(c.yard.tidied, func(j backup.TidyJob) bool { return j.Database == part }) {
		t.Errorf("the copy was tidied: %+v", c.yard.tidied)
	}
	c.drops("eu-west-1", "twin")
	c.pass(time.Minute)
	c.round()
	if last := c.yard.tidied[len(c.yard.tidied)-1]; !c.uncopied() || last.Database != part || !last.Gone || last.Repository != "far" {
		t.Errorf("tidied %+v", last)
	}
}

// The source stays while it is copied, whatever becomes of its snapshot; what is cancelled leaves
// nothing.
func TestACopyUnderWay(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "first", backup.Take, nil), operation.Done)
	label := c.shot("first").Label
	c.ends(c.snapshot(i, "later", backup.Take, func(a *backup.TakeArgs) { a.Full = true }), operation.Done)
	c.yard.set(func() { c.yard.slow = true })
	id := c.copies("first", "twin", shop.Region)
	c.drops(shop.Region, "first")
	if !slices.Contains(c.backups.look().used[i.ResourceID], label) {
		t.Error("nothing keeps what is copied")
	}
	if h := c.backups.look().holdings(i.ResourceID, "main"); !slices.Contains(h.Keep(c.now).Labels, label) {
		t.Error("what is copied is not kept")
	}
	h := c.backups.look().holdings(part, "far")
	if h.gone(h.Keep(c.now)) {
		t.Error("the part of a copy under way is to be removed")
	}
	c.put(state.Put(state.OperationCancel(id), operation.Wish{By: "me", At: time.Now()}))
	c.ends(id, operation.Cancelled)
	if s := c.shot("twin"); s.Name != "" || c.events("twin") != "0190" {
		t.Errorf("%+v, events %q", s, c.events("twin"))
	}
	c.yard.set(func() { c.yard.slow = false })
	c.pass(time.Minute)
	c.round()
	if !c.uncopied() {
		t.Error("something is left of a copy that was cancelled")
	}
}

func TestACopyThatFails(t *testing.T) {
	c := midnight(t)
	i := c.instance("orders", "zone-a", nil)
	c.ends(c.snapshot(i, "first", backup.Take, nil), operation.Done)
	c.yard.set(func() {
		c.yard.fails["zone-a"], c.yard.fails["zone-b"] = "the repository is full", "the repository is full"
	})
	id := c.copies("first", "twin", shop.Region)
	c.waits(id, "the repository is full")
	c.yard.set(func() { c.yard.fails["zone-a"], c.yard.fails["zone-b"] = "!it is damaged", "!it is damaged" })
	c.ends(id, operation.Failed)
	if s := c.shot("twin"); s.State != backup.Failed || !strings.Contains(s.Reason, "it is damaged") {
		t.Errorf("%+v", s)
	}
	c.yard.set(func() { clear(c.yard.fails) })
	c.pass(time.Minute)
	c.round()
	if !c.uncopied() {
		t.Error("something is left of a copy that failed")
	}
}

func directory(t *testing.T, dir string) store.Store {
	t.Helper()
	s, err := store.OpenDirectory(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// After the home was restored copies are found again by their notes, in the repository that has them.
func TestCopiesOfAHomeThatWasRestored(t *testing.T) {
	c := midnight(t)
	key := repository.NewKey()
	dirs := map[string]string{"main": t.TempDir(), "far": t.TempDir()}
	for name, dir := range dirs {
		if err := store.WriteMarker(t.Context(), directory(t, dir), store.Marker{ID: "repo-" + name}); err != nil {
			t.Fatal(err)
		}
	}
	s := directory(t, dirs["far"])
	c.backups.Repository = func(_ context.Context, name, database string) (member.Repository, error) {
		return member.Repository{Name: name, ID: "repo-" + name, Kind: "directory", Path: dirs[name], Passphrase: repository.Passphrase(key, database)}, nil
	}
	c.backups.Log = slog.New(slog.DiscardHandler)
	i := c.instance("orders", "zone-a", nil)
	note := func(part, name string) {
		shot := backup.Snapshot{Scope: shop, Name: name, State: backup.Available, Instance: &i, Database: i.ResourceID, Repository: "far", Part: part, Label: "B1", Tags: []spec.Tag{}}
		text, err := json.Marshal(backup.CopyNote{Snapshot: shot, Backup: backup.Backup{Database: part, Repository: "far", Label: "B1", CopyOf: "x/main/B1"}})
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := repository.SealNote(repository.Passphrase(key, part), part, text)
		if err != nil {
			t.Fatal(err)
		}
		for k, text := range map[string]string{backup.NoteKey: string(sealed), "backup/" + part + "/backup.info": "x"} {
			if _, err := s.Put(t.Context(), part+"/"+k, strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	note(part, "unknown")
	note("copy-2", "taken")
	note("copy-3", "under-way")
	if _, err := s.Put(t.Context(), "copy-4/half", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	c.put(
		state.Put(state.Repository("far"), backup.Repository{Name: "far", Copies: true}),
		state.Put(state.Snapshot(shop.Account, shop.Region, "taken"), backup.Snapshot{Scope: shop, Name: "taken", State: backup.Available, Instance: &i, Database: i.ResourceID, Repository: "main", Label: "B7"}),
		state.Put(state.Snapshot(shop.Account, shop.Region, "under-way"), backup.Snapshot{
			Scope: shop, Name: "under-way", State: backup.Copying, Instance: &i, Database: i.ResourceID, Repository: "far", Part: "copy-3", Operation: "op-of-then",
		}),
		state.Put(state.BackupPart("copy-3", "far"), backup.Part{Repository: "far", About: operation.About{Scope: shop, Type: event.Instance, Name: "orders", Database: "copy-3"}}),
	)
	c.restore("r1")
	testkit.Eventually(t, 20*time.Second, func() error { // the keeper waits for no repository
		c.pass(time.Minute)
		c.round()
		if s := c.shot("unknown"); s.State != backup.Available {
			return fmt.Errorf("the copy in far is %+v", s)
		}
		return nil
	})
	for range 3 {
		c.pass(time.Minute)
		c.round()
	}
	for name, in := range map[string]string{"unknown": part, "taken-2": "copy-2", "under-way": "copy-3"} {
		if s := c.shot(name); s.State != backup.Available || s.Part != in || s.Label != "B1" {
			t.Errorf("%s is %+v", name, s)
		}
		if _, err := state.Load[backup.Backup](c.cache, state.Backup(in, "far", "B1")); err != nil {
			t.Errorf("the backup of %s: %v", name, err)
		}
		if all := c.backups.backups(in, "main"); len(all) > 0 {
			t.Errorf("the repository main has none of %s: %+v", name, all)
		}
	}
	if s := c.shot("taken"); s.Label != "B7" {
		t.Errorf("another snapshot was replaced: %+v", s)
	}
	if len(c.yard.tidied) > 0 && slices.ContainsFunc(c.yard.tidied, func(j backup.TidyJob) bool { return backup.IsCopy(j.Database) }) {
		t.Errorf("tidied %+v", c.yard.tidied)
	}
}
