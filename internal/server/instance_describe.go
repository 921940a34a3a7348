package server

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/spec"
	"howdah/internal/state"
)

// describeDBInstances lists instances with the truth about their processes.
func (s *Server) describeDBInstances(ctx context.Context, c call, in *rds.DescribeDBInstancesMessage) (*rds.DBInstanceMessage, error) {
	if err := s.fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := readFilters(in.Filters, "db-cluster-id", "db-instance-id", "dbi-resource-id", "domain", "engine")
	if err != nil {
		return nil, err
	}
	l := s.look(c.Account)
	found := l.instances
	if in.DBInstanceIdentifier != nil {
		record, err := l.findInstance(c.Scope, *in.DBInstanceIdentifier)
		if err != nil {
			return nil, err
		}
		found = []state.Record[spec.Instance]{record}
	}
	var matching []spec.Instance
	for _, r := range found {
		if r.Value.Scope == c.Scope && filters.match(l.instanceAttributes(r.Value)) {
			matching = append(matching, r.Value)
		}
	}
	chosen, marker, err := page(matching, func(i spec.Instance) string { return i.Name }, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBInstanceMessage{Marker: marker, DBInstances: []rds.DBInstance{}}
	for _, i := range chosen {
		out.DBInstances = append(out.DBInstances, *l.instanceOut(i))
	}
	return out, nil
}

// instanceAttributes are what filters compare, by filter name.
func (l *look) instanceAttributes(i spec.Instance) map[string][]string {
	attributes := map[string][]string{
		"db-instance-id":  {i.Name, i.ARN("db", i.Name)},
		"dbi-resource-id": {i.ResourceID},
		"engine":          {i.Engine},
	}
	if c, ok := l.cluster[i.Cluster]; ok {
		attributes["db-cluster-id"] = []string{c.Name, c.ARN("cluster", c.Name)}
	}
	return attributes
}
