// Package automated is the part of RDS about automated backups: those of databases that live, and
// those that were kept of databases which were deleted. It finds what a restore to a moment begins
// with. What a database that lives has is told by its record and its backups; of one that is gone, a
// record of its own says it.
package automated

import (
	"cmp"
	"slices"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Kind is what the automated backups of instances and of clusters differ in.
type Kind struct {
	// ARN is their type in ARNs, and prefix what resource ids of databases begin with.
	ARN, prefix string
	// parameters name a database in a restore: by its name, its resource id, and the ARN of its
	// backups, or "".
	parameters [3]string
	// resource is the parameter with the resource id of a database, of other actions.
	resource string
	// notFound is the code of backups that are not there, badState of those that cannot be deleted.
	notFound, badState string
}

// The kinds.
var (
	Instance = &Kind{
		ARN: "auto-backup", prefix: "db-", parameters: [3]string{"SourceDBInstanceIdentifier", "SourceDbiResourceId", "SourceDBInstanceAutomatedBackupsArn"},
		resource: "DbiResourceId", notFound: rds.ErrDBInstanceAutomatedBackupNotFound, badState: rds.ErrInvalidDBInstanceAutomatedBackupState,
	}
	Cluster = &Kind{
		ARN: "cluster-auto-backup", prefix: "cluster-", parameters: [3]string{"SourceDBClusterIdentifier", "SourceDbClusterResourceId"},
		resource: "DbClusterResourceId", notFound: rds.ErrDBClusterAutomatedBackupNotFound, badState: rds.ErrInvalidDBClusterAutomatedBackupState,
	}
)

// Held is what is held of one database.
type Held struct {
	restore.Source
	// Kept is the record of a database that is gone; nil: it lives.
	Kept *state.Record[backup.Automated]
	// Backups is how many there are.
	Backups int
	// Away is the region that they are copied to, or "". CopyOf says that these are the copies.
	Away   string
	CopyOf bool
}

// common is the database as it is, or was.
func (h Held) common() spec.Common {
	if h.Cluster != nil {
		return h.Cluster.Common
	}
	return h.Instance.Common
}

// status is the word for it.
func (h Held) status() string {
	switch {
	case h.Kept != nil:
		return "retained"
	case h.Backups == 0:
		return "creating"
	}
	return "active"
}

// id is the name of a database's automated backups in ARNs.
func (k *Kind) id(database string) string {
	return "ab-" + strings.TrimPrefix(strings.ToLower(database), k.prefix)
}

// ARNOf is the ARN of the automated backups of a database, by its resource id, in a scope.
func (k *Kind) ARNOf(scope spec.Scope, database string) string {
	return scope.ARN(k.ARN, k.id(strings.TrimSpace(database)))
}

// database is the resource id of the database whose automated backups have an ARN in the caller's
// scope.
func (k *Kind) database(scope spec.Scope, arn string) (string, bool) {
	in, id := look.Locate(scope, arn, k.ARN)
	id, ok := strings.CutPrefix(id, "ab-")
	return k.prefix + strings.ToUpper(id), ok && in == scope
}

// held is what is held in a scope, by name.
func (k *Kind) held(l *look.Look, scope spec.Scope) []Held {
	var all []Held
	for _, h := range slices.Concat(k.living(l, scope), k.kept(l, scope), k.copies(l, scope)) {
		c := h.common()
		h.Backups = len(l.Cache.Keys(state.BackupPrefix(c.ResourceID) + h.Repository + "/"))
		if a, ok := l.AutomatedOf(c.ResourceID); ok && !h.CopyOf {
			h.Away = a.SecondRegion
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b Held) int { return cmp.Compare(a.key(), b.key()) })
	return all
}

// key is what they are sorted by: several databases may have had the same name.
func (h Held) key() string { return h.common().Name + "/" + h.common().ResourceID }

func (k *Kind) living(l *look.Look, scope spec.Scope) []Held {
	var all []Held
	if k == Cluster {
		for _, r := range l.Clusters {
			if s, err := restore.OfCluster(l, r.Value); err == nil && r.Value.Scope == scope && !r.Value.Deleting {
				all = append(all, Held{Source: s})
			}
		}
		return all
	}
	for _, r := range l.InstancesIn(scope) {
		if s, err := restore.OfInstance(l, *r.Value); err == nil && !r.Value.Deleting {
			all = append(all, Held{Source: s})
		}
	}
	return all
}

func (k *Kind) kept(l *look.Look, scope spec.Scope) []Held {
	var all []Held
	for _, r := range state.LoadAll[backup.Automated](l.Cache, state.AutomatedRoot) {
		if a := r.Value; a.Scope == scope && a.Retained && (a.Cluster != nil) == (k == Cluster) {
			all = append(all, Held{Source: restore.OfRetained(l.Source, a), Kept: &r})
		}
	}
	return all
}

// copies are the copies of backups that databases of other regions have in this one.
func (k *Kind) copies(l *look.Look, scope spec.Scope) []Held {
	var all []Held
	if k == Cluster {
		return nil // RDS has none either
	}
	for _, r := range state.LoadAll[backup.Automated](l.Cache, state.AutomatedRoot) {
		a := r.Value
		if a.Account != scope.Account || a.SecondRegion != scope.Region || a.Instance == nil {
			continue
		}
		h := Held{CopyOf: true}
		if a.Retained {
			h.Kept = &r
		} else if i, lives := l.Instance[a.Database]; lives {
			a.Instance, a.Until, a.Retention = i, restore.Latest(l.FactsOf(*i)), i.BackupRetention
		}
		of := *a.Instance
		of.StorageKey = a.SecondKey
		a.Instance, a.Repository = &of, a.Second
		h.Source = restore.OfRetained(l.Source, a)
		all = append(all, h)
	}
	return all
}

// source is what a restore begins with. Of copies, the new database belongs to their region.
func (h Held) source(scope spec.Scope) restore.Source {
	if h.CopyOf {
		of := *h.Instance
		of.Scope = scope
		h.Instance = &of
	}
	return h.Source
}

// find is what is held of a database, by its resource id.
func (k *Kind) find(l *look.Look, scope spec.Scope, database string) (Held, error) {
	all := k.held(l, scope)
	at := slices.IndexFunc(all, func(h Held) bool { return strings.EqualFold(h.common().ResourceID, strings.TrimSpace(database)) })
	if at < 0 {
		return Held{}, wire.NewError(k.notFound, "No automated backup of the resource %s is found.", database)
	}
	return all[at], nil
}

// Source is what a restore to a moment begins with: a database that lives, by its name, or one that
// lives or is gone, by its resource id or by the ARN of its automated backups.
func (k *Kind) Source(l *look.Look, scope spec.Scope, name, resource, arn *string) (restore.Source, error) {
	given := 0
	for _, p := range []*string{name, resource, arn} {
		if p != nil {
			given++
		}
	}
	switch {
	case given != 1:
		names := slices.DeleteFunc(k.parameters[:], func(p string) bool { return p == "" })
		return restore.Source{}, wire.NewError(api.ErrInvalidParameterCombination, "Exactly one of %s must be given.", strings.Join(names, ", "))
	case name != nil && k == Cluster:
		r, err := l.FindCluster(scope, *name)
		if err != nil {
			return restore.Source{}, look.OrBlank(strings.TrimSpace(*name), k.parameters[0], err)
		}
		return restore.OfCluster(l, r.Value)
	case name != nil:
		r, err := l.FindInstance(scope, *name)
		if err != nil {
			return restore.Source{}, look.OrBlank(strings.TrimSpace(*name), k.parameters[0], err)
		}
		return restore.OfInstance(l, r.Value)
	case resource != nil && strings.TrimSpace(*resource) == "":
		return restore.Source{}, front.Blank(k.parameters[1])
	case resource != nil:
		h, err := k.find(l, scope, *resource)
		if err != nil {
			return restore.Source{}, err
		}
		return h.source(scope), nil
	}
	database, ok := k.database(scope, *arn)
	if !ok {
		return restore.Source{}, wire.NewError(k.notFound, "No automated backup is found: %s.", *arn)
	}
	h, err := k.find(l, scope, database)
	if err != nil {
		return restore.Source{}, err
	}
	return h.source(scope), nil
}

// Tagged are the automated backups with an ARN. They have the tags of their database.
func (k *Kind) Tagged(l *look.Look, scope spec.Scope, arn string) (look.Tagged, error) {
	database, _ := k.database(scope, arn)
	h, err := k.find(l, scope, database)
	if err != nil {
		return look.Tagged{}, err
	}
	gone := wire.NewError(k.badState, "Automated backups have the tags of their database %s: change these.", h.common().Name)
	return look.Tagged{Tags: h.common().Tags, Gone: gone}, nil
}
