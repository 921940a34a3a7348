package upkeep

import (
	"context"
	"slices"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/cluster"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// subject is an instance or a cluster, as far as maintenance can be pending for it.
type subject struct {
	*spec.Common
	kind event.SourceType
	// ownVersion: its version is its own. That of an instance in a cluster is the cluster's.
	ownVersion bool
	// autoMinor: newer minor versions are brought in without asking.
	autoMinor bool
	// ownCertificate: its certificate is its own. In a Multi-AZ DB cluster it is the cluster's.
	ownCertificate bool
}

func subjectOfInstance(i *spec.Instance) subject {
	return subject{&i.Common, event.Instance, i.Cluster == "", i.AutoMinor, !i.Auto}
}

func subjectOfCluster(c *spec.Cluster) subject {
	return subject{&c.Common, event.Cluster, true, c.AutoMinor, c.MultiAZ()}
}

// ward is a subject with its record, and with what can be done to it.
type ward struct {
	subject
	key string
	// usable: it is available, or nearly.
	usable func(l *look.Look) bool
	// may answers an error where it cannot be changed now.
	may func(l *look.Look) error
	// put writes the record with what instances and clusters have alike.
	put func(next spec.Common) state.Op
	// waiting carries out what waits for the window, once it is usable.
	waiting func(ctx context.Context, l *database.Sight, c front.Call) error
	// apply carries values out on what becomes of the record.
	apply func(ctx context.Context, l *database.Sight, c front.Call, next spec.Common, values spec.Values) error
	// upgrade has it restarted with a newer version.
	upgrade func(ctx context.Context, l *database.Sight, c front.Call, to string) error
	// instances are the instances that it is, or has.
	instances func(l *look.Look) []spec.Instance
}

func (u *Upkeep) instance(r state.Record[spec.Instance]) ward {
	w := wardOf(instance.Kind, r, subjectOfInstance(&r.Value))
	w.upgrade = func(ctx context.Context, _ *database.Sight, c front.Call, to string) error {
		return u.upgradeInstance(ctx, c, r, to)
	}
	w.instances = func(*look.Look) []spec.Instance { return []spec.Instance{r.Value} }
	return w
}

func (u *Upkeep) cluster(r state.Record[spec.Cluster]) ward {
	w := wardOf(cluster.Kind, r, subjectOfCluster(&r.Value))
	w.upgrade = func(ctx context.Context, l *database.Sight, c front.Call, to string) error {
		return u.upgradeCluster(ctx, l, c, r, to)
	}
	w.instances = func(l *look.Look) []spec.Instance { return l.InstancesOf(r.Value.ResourceID) }
	return w
}

// wardOf is a ward with what can be done to instances and clusters alike.
func wardOf[T any](k *database.Kind[T], r state.Record[T], s subject) ward {
	with := func(next spec.Common) T {
		v := r.Value
		*k.Common(&v) = next
		return v
	}
	return ward{
		subject: s, key: r.Key,
		usable: func(l *look.Look) bool { return slices.Contains(look.Usable, k.Status(l, r.Value)) },
		may:    func(l *look.Look) error { return k.May(l, operation.Change, r.Value) },
		put:    func(next spec.Common) state.Op { return state.Swap(r.Key, r.Revision, with(next)) },
		waiting: func(ctx context.Context, l *database.Sight, c front.Call) error {
			return k.ApplyWaiting(ctx, l, c, r)
		},
		apply: func(ctx context.Context, l *database.Sight, c front.Call, next spec.Common, values spec.Values) error {
			return k.Apply(ctx, k.Begin(l, c), r, with(next), values)
		},
	}
}
