package snapshot

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"

	"howdah/api"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// Wish is a snapshot that somebody asks for.
type Wish struct {
	// Name is what it is to be called, and Parameter the name of the parameter that says so.
	Name, Parameter string
	Tags            []spec.Tag
	// Operation is backup.Take or backup.Final.
	Operation operation.Kind
	// DropAutomated is of backup.Final: the automated backups go with the database.
	DropAutomated bool
	// Instance or Cluster is the database. The caller sees to it that its state allows a snapshot.
	Instance *spec.Instance
	Cluster  *spec.Cluster
}

func (w Wish) common() spec.Common {
	if w.Cluster != nil {
		return w.Cluster.Common
	}
	return w.Instance.Common
}

// Kind is that of the snapshot of such a database.
func (w Wish) kind() *Kind {
	if w.Cluster != nil {
		return Cluster
	}
	return Instance
}

// Take is the record of a snapshot that is about to be made, with the writes that begin it. Whoever
// asks commits them together with what is his own.
func Take(l *look.Look, c front.Call, w Wish) (backup.Snapshot, []state.Op, error) {
	k, of := w.kind(), w.common()
	s := backup.Snapshot{
		Scope: of.Scope, Name: wire.Lower(&w.Name), State: backup.Creating, Database: of.ResourceID, Repository: l.RepositoryOf(of.ResourceID),
		Asked: c.Now, KMSKey: of.StorageKey, Tags: w.Tags,
	}
	if of.CopyTagsToSnapshot {
		s.Tags = spec.MergeTags(of.Tags, w.Tags)
	}
	s.Keep(w.Instance, w.Cluster)
	err := look.First(k.checkName(w.Parameter, s.Name), spec.CheckTags(s.Tags), k.Free(l.Source, s.Scope, s.Name), k.Room(l.Source, s.Scope))
	if err != nil {
		return s, nil, err
	}
	if s.Repository == "" {
		return s, nil, look.NoRepository()
	}
	ops, err := k.begin(l, c, w, &s)
	if err != nil {
		return s, nil, err
	}
	return s, append(ops, state.Swap(k.Key(s), 0, s)), nil
}

// begin is the operation that makes a snapshot, with the events that tell of it.
func (k *Kind) begin(l *look.Look, c front.Call, w Wish, s *backup.Snapshot) ([]state.Op, error) {
	s.Operation = newOperation(s.Name)
	about := operation.About{Scope: s.Scope, Type: k.ofSource, Name: w.common().Name, Database: s.Database}
	args := backup.TakeArgs{Snapshot: k.Key(*s), Repository: s.Repository, DropAutomated: w.DropAutomated}
	begin, err := begin(l, c, s.Operation, w.Operation, about, args)
	if err != nil {
		return nil, err
	}
	ops, err := look.TellOf(c, k.about(*s), s.Operation, look.Event(k.creating))
	if err != nil || k == Cluster { // RDS has no event for a cluster
		return append(ops, begin), err
	}
	more, err := look.Tell(c, k.ofSource, w.common(), look.Event("0001"))
	return append(append(ops, more...), begin), err
}

// begin is the write that begins an operation.
func begin(l *look.Look, c front.Call, id string, kind operation.Kind, about operation.About, args any) (state.Op, error) {
	r, err := operation.New(id, kind, about, args, c.Now)
	if err != nil {
		return state.Op{}, err
	}
	op, err := view.Begin(l.Cache, r)
	if errors.Is(err, operation.ErrTooMany) {
		return op, wire.NewError(api.ErrThrottlingException, "Too many operations are under way (%s): see `howdah operations list`, and try again when some have ended.", err)
	}
	return op, err
}

// newOperation is an id for the operation that makes a snapshot: its name, so that people see which
// one it is, and enough that is random.
func newOperation(name string) string {
	var b [6]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("snapshot: no randomness: " + err.Error())
	}
	const most = 40
	return "snap-" + strings.Trim(name[:min(len(name), most)], "-") + "-" + hex.EncodeToString(b[:])
}
