package database

import (
	"slices"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/address"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/event"
	"howdah/internal/model/spec"
	"howdah/internal/state"
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

// WarnPublic tells that an endpoint stays private although it shall be public.
func (s *Source) WarnPublic(c front.Call, kind event.SourceType, common spec.Common, public bool) ([]state.Op, error) {
	if !public || s.Pools.Public.IsValid() {
		return nil, nil
	}
	return look.Tell(c, kind, common, look.Event(noPublicPool))
}

// Publish makes an instance public, or private. Asking for what it is already moves it
// if that was not possible before. It never waits for the window, as on RDS.
func (m *Modification) Publish(i *spec.Instance, public *bool) error {
	if public == nil {
		return nil
	}
	was := i.Public
	i.Public = *public
	if i.Public && !was && !m.Pools.Public.IsValid() {
		m.Began = append(m.Began, look.Event(noPublicPool))
	}
	at, ops, err := m.Pools.Reseat(address.Seat{Address: i.Address, Former: i.Former}, i.ResourceID, was, i.Public)
	if err != nil {
		return err
	}
	i.Address, i.Former = at.Address, at.Former
	m.Ops = append(m.Ops, ops...)
	cluster := m.ClusterOf(*i)
	if cluster == nil {
		return nil
	}
	own := m.InstancesOf(i.Cluster)
	for n := range own {
		if own[n].ResourceID == i.ResourceID {
			own[n] = *i
		}
	}
	ops, err = m.PublishCluster(cluster, own, i.Address)
	m.Ops = append(m.Ops, ops...)
	return err
}

// PublishCluster has the endpoints of a cluster follow its instances; without any they
// stay as they are. It takes none of the addresses in but.
func (l *Sight) PublishCluster(c *spec.Cluster, own []spec.Instance, but ...string) ([]state.Op, error) {
	own = slices.DeleteFunc(slices.Clone(own), func(i spec.Instance) bool { return i.Deleting })
	if len(own) == 0 {
		return nil, nil
	}
	was := c.Public
	c.Public = !slices.ContainsFunc(own, func(i spec.Instance) bool { return !i.Public })
	writer, ops, err := l.Pools.Reseat(address.Seat{Address: c.Address, Former: c.Former}, c.ResourceID, was, c.Public, but...)
	if err != nil {
		return nil, err
	}
	but = append(but, writer.Address)
	reader, more, err := l.Pools.Reseat(address.Seat{Address: c.ReaderAddress, Former: c.ReaderFormer}, c.ResourceID, was, c.Public, but...)
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
		at, more, err := l.Pools.Reseat(address.Seat{Address: e.Address, Former: e.Former}, e.ResourceID, was, c.Public, but...)
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

// Leaves has the endpoints of the cluster of an instance that is being deleted follow
// the others.
func (l *Sight) Leaves(i spec.Instance) ([]state.Op, error) {
	record, ok := l.ClusterRecord(i.Cluster)
	if !ok {
		return nil, nil
	}
	cluster := record.Value
	own := slices.DeleteFunc(l.InstancesOf(i.Cluster), func(o spec.Instance) bool { return o.ResourceID == i.ResourceID })
	ops, err := l.PublishCluster(&cluster, own)
	if err != nil || cluster.Public == record.Value.Public && cluster.Address == record.Value.Address {
		return nil, err
	}
	cluster.Generation++
	return append(ops, state.Swap(record.Key, record.Revision, cluster)), nil
}
