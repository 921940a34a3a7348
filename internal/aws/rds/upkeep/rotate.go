package upkeep

import (
	"context"
	"time"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// RotateBefore is how long before the end of its authority a server's certificate is
// rotated in the window although nobody asked for it.
const RotateBefore = 365 * 24 * time.Hour

// authorities are what decides about rotations, looked at once for many databases.
type authorities struct {
	names []string
	ends  map[string]time.Time // of those whose end is known
}

func (u *Upkeep) authorities() authorities {
	a := authorities{names: u.Authorities.Names(), ends: map[string]time.Time{}}
	all, err := u.Authorities.Certs()
	if err != nil {
		u.Log.Warn("look at authorities", "error", err)
	}
	for name, cert := range all {
		a.ends[name] = cert.NotAfter.UTC()
	}
	return a
}

// of is the authority that a database's servers can go to now.
func (a authorities) of(c *spec.Common) (to string, ok bool) {
	return spec.NewerAuthority(c.CACertificate, a.names)
}

// forced is from when on the window rotates without being asked; zero: never.
func (a authorities) forced(c *spec.Common) time.Time {
	end, known := a.ends[c.CACertificate]
	if !known {
		return time.Time{}
	}
	return end.Add(-RotateBefore)
}

// due: the window rotates a certificate now.
func (a authorities) due(c *spec.Common, now time.Time) bool {
	from := a.forced(c)
	return spec.InMaintenanceWindow(c.MaintenanceWindow, now) && (c.OptedIn(spec.RotateCertificate) || !from.IsZero() && now.After(from))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// rotate has a database's servers show certificates of the newest authority.
func (u *Upkeep) rotate(ctx context.Context, l *database.Sight, c front.Call, w ward) error {
	to, ok := u.authorities().of(w.Common)
	if !ok {
		return nil
	}
	if err := w.may(l.Look); err != nil {
		return err
	}
	next := *w.Common
	next.Pending = withoutCertificate(next.Pending)
	return w.apply(ctx, l, c, next, spec.Values{CACertificate: to})
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

// rotations tell of newer authorities, and rotate in the window the certificates of those who
// want that, or whose authority is near its end.
func (h *House) rotations(now time.Time) []chore {
	if !h.rotates {
		return nil
	}
	var all []chore
	authorities := h.authorities()
	for _, w := range h.wards {
		to, ok := authorities.of(w.Common)
		if !ok || !w.ownCertificate {
			continue
		}
		if w.OfferedAuthority != to {
			all = append(all, w.chore("offer a newer authority", " (authority)", func(ctx context.Context, l *database.Sight, c front.Call) error {
				return h.offerAuthority(ctx, l.Look, c, w, to)
			}))
			continue
		}
		if authorities.due(w.Common, now) {
			all = append(all, w.chore("rotate the certificate", " (rotate)", func(ctx context.Context, l *database.Sight, c front.Call) error {
				if !w.usable(l.Look) {
					return nil
				}
				return h.rotate(ctx, l, c, w)
			}))
		}
	}
	return all
}

// offerAuthority tells once that a certificate can be rotated. RDS's event is one of instances.
func (u *Upkeep) offerAuthority(ctx context.Context, l *look.Look, c front.Call, w ward, to string) error {
	next := *w.Common
	next.OfferedAuthority = to
	next.Generation++
	ops := []state.Op{w.put(next)}
	for _, i := range w.instances(l) {
		told, err := look.Tell(c, event.Instance, i.Common, look.Event("0501"))
		if err != nil {
			return err
		}
		ops = append(ops, told...)
	}
	return u.State.Commit(ctx, ops...)
}
