package server

import (
	"context"
	"slices"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/event"
	"howdah/internal/model/route"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// PubliclyAccessible decides which pool the address of an endpoint is of. Instances
// say it for themselves. The endpoints of a cluster, which lead to any of its
// instances, are public when all of these are: nobody reaches one that is not public
// by the way of another.
//
// An endpoint moves in three steps, each a transaction: here its record gets the new
// address, and keeps the old one as a former one; reconcile moves the route once
// certificates name the new one; then a chore gives the former one back.

// noPublicPool is told of what cannot be public.
const noPublicPool = "H010"

// warnPublic tells that an endpoint stays private although it shall be public.
func (s *Server) warnPublic(c front.Call, kind event.SourceType, common spec.Common, public bool) ([]state.Op, error) {
	if !public || s.pools.Public.IsValid() {
		return nil, nil
	}
	return look.Tell(c, kind, common, look.Event(noPublicPool))
}

// publish makes an instance public, or private. Asking for what it is already moves it
// if that was not possible before. It never waits for the window, as on RDS.
func (m *modification) publish(i *spec.Instance, public *bool) error {
	if public == nil {
		return nil
	}
	was := i.Public
	i.Public = *public
	if i.Public && !was && !m.s.pools.Public.IsValid() {
		m.began = append(m.began, look.Event(noPublicPool))
	}
	at, ops, err := m.s.pools.Reseat(address.Seat{Address: i.Address, Former: i.Former}, i.ResourceID, was, i.Public)
	if err != nil {
		return err
	}
	i.Address, i.Former = at.Address, at.Former
	m.ops = append(m.ops, ops...)
	cluster := m.clusterOf(*i)
	if cluster == nil {
		return nil
	}
	own := m.InstancesOf(i.Cluster)
	for n := range own {
		if own[n].ResourceID == i.ResourceID {
			own[n] = *i
		}
	}
	ops, err = m.publishCluster(cluster, own, i.Address)
	m.ops = append(m.ops, ops...)
	return err
}

// publishCluster has the endpoints of a cluster follow its instances; without any they
// stay as they are. It takes none of the addresses in but.
func (l *sight) publishCluster(c *spec.Cluster, own []spec.Instance, but ...string) ([]state.Op, error) {
	own = slices.DeleteFunc(slices.Clone(own), func(i spec.Instance) bool { return i.Deleting })
	if len(own) == 0 {
		return nil, nil
	}
	was := c.Public
	c.Public = !slices.ContainsFunc(own, func(i spec.Instance) bool { return !i.Public })
	writer, ops, err := l.s.pools.Reseat(address.Seat{Address: c.Address, Former: c.Former}, c.ResourceID, was, c.Public, but...)
	if err != nil {
		return nil, err
	}
	but = append(but, writer.Address)
	reader, more, err := l.s.pools.Reseat(address.Seat{Address: c.ReaderAddress, Former: c.ReaderFormer}, c.ResourceID, was, c.Public, but...)
	if err != nil {
		return nil, err
	}
	but = append(but, reader.Address)
	ops = append(ops, more...)
	c.Address, c.Former, c.ReaderAddress, c.ReaderFormer = writer.Address, writer.Former, reader.Address, reader.Former
	for _, r := range l.EndpointsOf(c.ResourceID) {
		e := r.Value
		if e.Deleting {
			continue
		}
		at, more, err := l.s.pools.Reseat(address.Seat{Address: e.Address, Former: e.Former}, e.ResourceID, was, c.Public, but...)
		if err != nil {
			return nil, err
		}
		if at.Address == e.Address {
			continue
		}
		but = append(but, at.Address)
		e.Address, e.Former = at.Address, at.Former
		e.Generation++
		ops = append(append(ops, more...), state.Swap(r.Key, r.Revision, e))
	}
	return ops, nil
}

// leaves has the endpoints of the cluster of an instance that is being deleted follow
// the others.
func (l *sight) leaves(i spec.Instance) ([]state.Op, error) {
	record, ok := l.ClusterRecord(i.Cluster)
	if !ok {
		return nil, nil
	}
	cluster := record.Value
	own := slices.DeleteFunc(l.InstancesOf(i.Cluster), func(o spec.Instance) bool { return o.ResourceID == i.ResourceID })
	ops, err := l.publishCluster(&cluster, own)
	if err != nil || cluster.Public == record.Value.Public && cluster.Address == record.Value.Address {
		return nil, err
	}
	cluster.Generation++
	return append(ops, state.Swap(record.Key, record.Revision, cluster)), nil
}

// movers are the endpoints that have moved: their former addresses are given back.
func (s *Server) movers(h *household) []chore {
	var all []chore
	for _, r := range h.instances {
		if i := r.Value; i.Moving() && view.Moved(s.Cache, i.ResourceID, i.Address) {
			all = append(all, chore{"give addresses back", r.Key, i.Account, func(ctx context.Context, _ *sight, _ front.Call) error {
				former := i.Former
				i.Former = nil
				i.Generation++
				return s.giveBack(ctx, former, state.Swap(r.Key, r.Revision, i))
			}})
		}
	}
	for _, r := range h.clusters {
		c := r.Value
		writer := view.Moved(s.Cache, route.Writer(c.ResourceID), c.Address)
		reader := view.Moved(s.Cache, route.Reader(c.ResourceID), c.ReaderAddress)
		if c.Moving() && writer && reader {
			all = append(all, chore{"give addresses back", r.Key, c.Account, func(ctx context.Context, _ *sight, _ front.Call) error {
				former := slices.Concat(c.Former, c.ReaderFormer)
				c.Former, c.ReaderFormer = nil, nil
				c.Generation++
				return s.giveBack(ctx, former, state.Swap(r.Key, r.Revision, c))
			}})
		}
	}
	for _, r := range h.endpoints {
		if e := r.Value; view.Moved(s.Cache, e.ResourceID, e.Address) {
			all = append(all, chore{"give addresses back", r.Key, e.Account, func(ctx context.Context, _ *sight, _ front.Call) error {
				former := e.Former
				e.Former = nil
				e.Generation++
				return s.giveBack(ctx, former, state.Swap(r.Key, r.Revision, e))
			}})
		}
	}
	return all
}

func (s *Server) giveBack(ctx context.Context, addresses []string, with state.Op) error {
	ops := []state.Op{with}
	for _, a := range addresses {
		ops = append(ops, state.Delete(state.Address(a)))
	}
	return s.client.Commit(ctx, ops...)
}
