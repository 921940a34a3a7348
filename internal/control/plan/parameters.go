package plan

import (
	"maps"
	"slices"
	"strconv"

	"howdah/internal/model/param"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
)

// GroupKey finds a parameter group.
type GroupKey struct {
	Kind param.Kind
	spec.Scope
	Name string
}

// Groups holds the parameter groups that users made. A group that is missing has no values, like a
// default group.
type Groups map[GroupKey]spec.ParameterGroup

// Add adds a group.
func (g Groups) Add(group spec.ParameterGroup) {
	g[GroupKey{group.Kind, group.Scope, group.Name}] = group
}

// inForce returns the values that its group gives an instance, or a cluster.
func (g Groups) inForce(kind param.Kind, c spec.Common) map[string]string {
	return g.taken(kind, c.Scope, c.ParameterGroup, c.Taken)
}

// taken returns the values of a group for whoever it is assigned to. Values of dynamic parameters
// come from the group that took effect with the last reboot. Values of static ones come from the
// newest group, as PostgreSQL itself keeps them waiting.
func (g Groups) taken(kind param.Kind, scope spec.Scope, asked string, taken spec.Taken) map[string]string {
	if taken.Group == "" {
		taken.Group = asked
	}
	all := g[GroupKey{kind, scope, taken.Group}].Values.Dynamics(taken.Serial)
	maps.Copy(all, g[GroupKey{kind, scope, asked}].Values.Statics())
	return all
}

// Waiting reports whether some value of a newly assigned group takes effect only with the next
// reboot.
func (g Groups) Waiting(kind param.Kind, scope spec.Scope, asked string, taken spec.Taken) bool {
	if taken.Group != "" && taken.Group != asked {
		return true
	}
	return g[GroupKey{kind, scope, asked}].Values.Waiting(taken.Serial)
}

// ofMember returns the values of an instance of a cluster. Those of its own group override those of
// the cluster's group.
func (g Groups) ofMember(c spec.Cluster, i spec.Instance) map[string]string {
	_, all := param.Split(g.taken(param.Cluster, c.Scope, c.ParameterGroup, i.ClusterTaken))
	_, own := param.Split(g.inForce(param.Instance, i.Common))
	maps.Copy(all, own)
	return all
}

// configure applies the values of groups that hold for the whole database.
func (d *Database) configure(values map[string]string, m param.Machine) {
	e := param.Apply(values, m)
	maps.Copy(d.Parameters, e.Settings)
	if e.ForceTLS != nil {
		d.RequireTLS = *e.ForceTLS
	}
	if e.Cache != nil {
		d.Warm = *e.Cache
	}
	if e.Logical != nil && *e.Logical {
		d.Parameters["wal_level"], d.LogicalSlots = "logical", true
	}
}

// standbyNeeds lists the settings of which a standby must not have less than its primary. With less
// it stops replaying.
var standbyNeeds = []string{"max_connections", "max_worker_processes", "max_wal_senders", "max_prepared_transactions", "max_locks_per_transaction"}

// Grows reports whether a restart would raise one of standbyNeeds.
func Grows(differences map[string]patroni.Difference) bool {
	return changes(differences, func(before, after float64) bool { return after > before })
}

// Shrinks reports whether a restart would lower one of standbyNeeds.
func Shrinks(differences map[string]patroni.Difference) bool {
	return changes(differences, func(before, after float64) bool { return after < before })
}

// changes reports whether one of standbyNeeds changes in such a way.
func changes(differences map[string]patroni.Difference, such func(before, after float64) bool) bool {
	return slices.ContainsFunc(standbyNeeds, func(name string) bool {
		d, ok := differences[name]
		before, errBefore := number(d.Old)
		after, errAfter := number(d.New)
		return ok && errBefore == nil && errAfter == nil && such(before, after)
	})
}

// Raise raises the settings in standbyNeeds of a database that follows another one at least to
// those of its source.
func (d *Database) Raise(source Database) {
	for _, name := range standbyNeeds {
		own, errOwn := number(d.Parameters[name])
		theirs, errTheirs := number(source.Parameters[name])
		if errOwn == nil && errTheirs == nil && theirs > own {
			d.Parameters[name] = source.Parameters[name]
		}
	}
}

// number reads an integer in all forms that PostgreSQL accepts.
func number(text string) (float64, error) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return float64(n), nil
	}
	return strconv.ParseFloat(text, 64)
}

// memberParameters returns the settings of one member. Those of parameter groups override those
// that the platform derives from memory.
func memberParameters(want Database, seat Seat, memory int64) map[string]string {
	all := spec.MemberParameters(memory)
	e := param.Apply(seat.Values, param.Machine{
		Memory: memory, Storage: seat.Limits.StorageBytes, CPUs: int(seat.Limits.CPUs), Port: want.Port, Replica: want.Upstream != nil,
	})
	maps.Copy(all, e.Settings)
	if want.LogicalSlots && want.Major >= patroni.SlotsSurvive && want.Upstream == nil {
		// Standbys keep copies of the slots that users want to survive a failover, and the old rows that
		// these need. Both are read on standbys alone.
		all["sync_replication_slots"], all["hot_standby_feedback"] = "on", "on"
	}
	return all
}

// newestTaken is what the first instance of a cluster that was rebooted took over of
// its group: from then on it counts for what all of them share.
func newestTaken(c spec.Cluster, instances []spec.Instance) spec.Taken {
	taken := c.Taken
	for _, i := range instances {
		own := i.ClusterTaken
		newer := own.Group == taken.Group && own.Serial > taken.Serial || own.Group != taken.Group
		if own.Group == c.ParameterGroup && newer && !i.Deleting {
			taken = own
		}
	}
	return taken
}
