package database

import (
	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// LetGo makes the databases that follow one that is being deleted independent. One that has not
// copied its source yet would be left with nothing. final says that the source stays until its
// final snapshot is there: then they follow it that long, as it may not be deleted after all.
func (l *Sight) LetGo(c spec.Common, final bool) ([]state.Op, error) {
	var ops []state.Op
	for _, f := range l.FollowersOf(c.ResourceID) {
		i := f.Value
		if !l.InstanceFacts(i).Layout.Created {
			return nil, wire.NewError(rds.ErrInvalidDBInstanceState, "The read replica %s of %s is still being created: wait for it, or delete it first.", i.Name, c.Name)
		}
		if final {
			continue
		}
		l.Promote(&i)
		i.Generation++
		ops = append(ops, state.Swap(f.Key, f.Revision, i))
	}
	return ops, nil
}

// Share makes a cluster's shared settings large enough for a class. Where that
// changes them, all members restart, one after the other: a standby whose settings
// are smaller than its primary's stops to replay.
func (l *Sight) Share(c *spec.Cluster, class string) {
	known, _ := spec.LookupClass(class)
	if known.Memory <= c.SharedMemory {
		return
	}
	if len(l.Members[c.ResourceID]) > 0 && spec.SharedDiffer(c.SharedMemory, known.Memory) {
		c.Restart++
	}
	c.SharedMemory = known.Memory
}

// SharedMemory is what the shared settings of a database are made for.
func (l *Sight) SharedMemory(resourceID string) int64 {
	if c, ok := l.Cluster[resourceID]; ok {
		return c.SharedMemory
	}
	i := l.Instance[resourceID]
	class, _ := spec.LookupClass(i.Class)
	return max(class.Memory, i.SharedMemory)
}

// GrowFollowers does the same for the databases that follow one, and those that
// follow them.
func (l *Sight) GrowFollowers(resourceID string, memory int64) []state.Op {
	var ops []state.Op
	for _, f := range l.FollowersOf(resourceID) {
		i := f.Value
		before := l.SharedMemory(i.ResourceID)
		if memory > before {
			if spec.SharedDiffer(before, memory) {
				i.Restart++
			}
			i.SharedMemory = memory
			i.Generation++
			ops = append(ops, state.Swap(f.Key, f.Revision, i))
		}
		ops = append(ops, l.GrowFollowers(i.ResourceID, memory)...)
	}
	return ops
}

// ReplicaNames are those who follow a database; of a cluster, none of its members
// is followed.
func (l *Sight) ReplicaNames(c spec.Common, cluster string) []string {
	names := []string{}
	if cluster != "" {
		return names
	}
	for _, f := range l.Followers[c.ResourceID] {
		names = append(names, look.NameFor(c.Scope, f.Value.Common, "db"))
	}
	return names
}

// Promote ends the following. The master user's password is the one that the data
// came with: the source's newest.
func (l *Sight) Promote(i *spec.Instance) {
	i.Promote(l.Root(*i))
	look.Begin(&i.Common, plan.Modifying, nil, "0057")
}
