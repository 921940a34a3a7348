package server

import (
	"context"
	"slices"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/cluster"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/instance"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// rotateBefore is how long before the end of its authority a server's certificate is
// rotated in the window although nobody asked for it.
const rotateBefore = 365 * 24 * time.Hour

// rotations is what decides about rotations, looked at once for many databases.
type rotations struct {
	names []string             // of authorities
	ends  map[string]time.Time // of those whose end is known
}

func (s *Server) rotations() rotations {
	r := rotations{names: s.authorities.Names(), ends: map[string]time.Time{}}
	all, err := s.authorities.Certs()
	if err != nil {
		s.Log.Warn("look at authorities", "error", err)
	}
	for name, cert := range all {
		r.ends[name] = cert.NotAfter.UTC()
	}
	return r
}

// of is the authority that a database's servers can go to now.
func (r rotations) of(c spec.Common) (to string, ok bool) {
	return spec.NewerAuthority(c.CACertificate, r.names)
}

// forced is from when on the window rotates without being asked; zero: never.
func (r rotations) forced(c spec.Common) time.Time {
	end, known := r.ends[c.CACertificate]
	if !known {
		return time.Time{}
	}
	return end.Add(-rotateBefore)
}

// due: the window rotates a certificate now.
func (r rotations) due(c spec.Common, now time.Time) bool {
	from := r.forced(c)
	return spec.InMaintenanceWindow(c.MaintenanceWindow, now) && (c.OptedIn(spec.RotateCertificate) || !from.IsZero() && now.After(from))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// rotateInstance has an instance's servers show certificates of the newest authority.
func (s *Server) rotateInstance(ctx context.Context, l *sight, c front.Call, r state.Record[spec.Instance]) error {
	i := r.Value
	to, ok := s.rotations().of(i.Common)
	if !ok {
		return nil
	}
	notAvailable := wire.NewError(rds.ErrInvalidDBInstanceState, "Instance %s is not in available state.", i.Name)
	if err := l.May(operation.Change, i, notAvailable); err != nil {
		return err
	}
	i.Pending = withoutCertificate(i.Pending)
	return instance.Kind.Apply(ctx, instance.Kind.Begin(l.Sight, c), r, i, spec.Values{CACertificate: to})
}

// rotateCluster is rotateInstance for all instances of a Multi-AZ DB cluster.
func (s *Server) rotateCluster(ctx context.Context, l *sight, c front.Call, r state.Record[spec.Cluster]) error {
	owner := r.Value
	to, ok := s.rotations().of(owner.Common)
	if !ok {
		return nil
	}
	if err := l.MayCluster(operation.Change, owner); err != nil {
		return err
	}
	owner.Pending = withoutCertificate(owner.Pending)
	return cluster.Kind.Apply(ctx, cluster.Kind.Begin(l.Sight, c), r, owner, spec.Values{CACertificate: to})
}

// withoutCertificate are the values that go on waiting when a rotation is carried out.
func withoutCertificate(p *spec.Values) *spec.Values {
	if p == nil {
		return nil
	}
	v := *p
	v.CACertificate, v.RotationRestart = "", false
	return database.OrNil(v)
}

// rotationChores tell of newer authorities, and rotate in the window the certificates
// of those who want that, or whose authority is near its end.
func (s *Server) rotationChores(h *household, now time.Time) []chore {
	if !h.rotates {
		return nil
	}
	var all []chore
	rotations := s.rotations()
	for _, r := range h.instances {
		i := r.Value
		to, ok := rotations.of(i.Common)
		if !ok || i.Auto {
			continue
		}
		if i.OfferedAuthority != to {
			all = append(all, chore{"offer a newer authority", r.Key + " (authority)", i.Account, func(ctx context.Context, _ *sight, c front.Call) error {
				return s.offerAuthority(ctx, c, r, to)
			}})
			continue
		}
		if rotations.due(i.Common, now) {
			all = append(all, chore{"rotate the certificate", r.Key + " (rotate)", i.Account, func(ctx context.Context, l *sight, c front.Call) error {
				if !slices.Contains(look.Usable, l.Status(i)) {
					return nil
				}
				return s.rotateInstance(ctx, l, c, r)
			}})
		}
	}
	return append(all, s.clusterRotations(h, now, rotations)...)
}

// clusterRotations are the chores for Multi-AZ DB clusters.
func (s *Server) clusterRotations(h *household, now time.Time, rotations rotations) []chore {
	var all []chore
	for _, r := range h.clusters {
		cluster := r.Value
		to, ok := rotations.of(cluster.Common)
		if !ok || !cluster.MultiAZ() {
			continue
		}
		if cluster.OfferedAuthority != to {
			all = append(all, chore{"offer a newer authority", r.Key + " (authority)", cluster.Account, func(ctx context.Context, l *sight, c front.Call) error {
				return s.offerToCluster(ctx, l, c, r, to)
			}})
			continue
		}
		if rotations.due(cluster.Common, now) {
			all = append(all, chore{"rotate the certificate", r.Key + " (rotate)", cluster.Account, func(ctx context.Context, l *sight, c front.Call) error {
				if !slices.Contains(look.Usable, l.ClusterStatus(cluster)) {
					return nil
				}
				return s.rotateCluster(ctx, l, c, r)
			}})
		}
	}
	return all
}

// offerAuthority tells once that a certificate can be rotated.
func (s *Server) offerAuthority(ctx context.Context, c front.Call, r state.Record[spec.Instance], to string) error {
	i := r.Value
	ops, err := look.Tell(c, event.Instance, i.Common, look.Event("0501"))
	if err != nil {
		return err
	}
	i.OfferedAuthority = to
	i.Generation++
	return s.client.Commit(ctx, append(ops, state.Swap(r.Key, r.Revision, i))...)
}

// offerToCluster tells it of all instances: RDS's event is theirs.
func (s *Server) offerToCluster(ctx context.Context, l *sight, c front.Call, r state.Record[spec.Cluster], to string) error {
	cluster := r.Value
	cluster.OfferedAuthority = to
	cluster.Generation++
	ops := []state.Op{state.Swap(r.Key, r.Revision, cluster)}
	for _, i := range l.InstancesOf(cluster.ResourceID) {
		told, err := look.Tell(c, event.Instance, i.Common, look.Event("0501"))
		if err != nil {
			return err
		}
		ops = append(ops, told...)
	}
	return s.client.Commit(ctx, ops...)
}
