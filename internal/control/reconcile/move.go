package reconcile

import (
	"net"
	"slices"

	"howdah/internal/model/member"
	"howdah/internal/model/route"
	"howdah/internal/state"
)

// listen is the address of an endpoint's route. One that is being moved stays where it
// is until the members' certificates name its new address: clients that verify it must
// not be turned away.
func (w *world) listen(d *database, id, address string, former []string) string {
	if len(former) == 0 {
		return address
	}
	last, err := state.Load[route.Route](w.cache, state.Route(id))
	if err != nil {
		return address // it is not served yet
	}
	now, _, err := net.SplitHostPort(last.Value.Listen)
	if err != nil || !slices.Contains(former, now) || w.named(d, address) {
		return address
	}
	return now
}

// named: all servers of a database that run on living hosts have a certificate with
// this address. One on a lost host gets it before it starts again.
func (w *world) named(d *database, address string) bool {
	for _, m := range d.layout.Value.Members {
		id := member.ID(d.want.ID, m.Name)
		last, told := d.assigned[id]
		switch {
		case m.Leaving || !w.alive(m.Host) || !told || last.Value.Want != member.Running:
			continue
		case !slices.Contains(last.Value.ServerIPs, address):
			return false
		}
		report, err := state.Load[member.Report](w.cache, state.Report(m.Host, id))
		if err != nil || followed(report.Value) < last.Value.Generation {
			return false
		}
	}
	return true
}

// followed is the newest assignment that a member's certificate follows, as far as its
// agent says.
func followed(r member.Report) int64 {
	if r.Rendered == 0 {
		return r.Generation
	}
	return r.Rendered
}

// released gives addresses back.
func released(addresses []string) []state.Op {
	var ops []state.Op
	for _, a := range addresses {
		ops = append(ops, state.Delete(state.Address(a)))
	}
	return ops
}
