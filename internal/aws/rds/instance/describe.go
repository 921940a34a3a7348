package instance

import (
	"context"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// describeDBInstances lists instances with the truth about their processes.
func (s *service) describeDBInstances(ctx context.Context, c front.Call, in *rds.DescribeDBInstancesMessage) (*rds.DBInstanceMessage, error) {
	if err := s.State.Fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := look.ReadFilters(in.Filters, "db-cluster-id", "db-instance-id", "dbi-resource-id", "domain", "engine")
	if err != nil {
		return nil, err
	}
	l := s.Of(c.Account)
	found := l.InstancesIn(c.Scope)
	if in.DBInstanceIdentifier != nil {
		record, err := l.FindInstance(c.Scope, *in.DBInstanceIdentifier)
		if err != nil {
			return nil, err
		}
		found = []state.Record[*spec.Instance]{{Value: &record.Value}}
	}
	matches := func(r state.Record[*spec.Instance]) bool {
		return filters.MatchBy(func(name string) []string { return instanceAttribute(l, r.Value, name) })
	}
	chosen, marker, err := page.OfSome(found, func(r state.Record[*spec.Instance]) string { return r.Value.Name }, matches, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBInstanceMessage{Marker: marker, DBInstances: []rds.DBInstance{}}
	for _, r := range chosen {
		out.DBInstances = append(out.DBInstances, *instanceOut(l, *r.Value))
	}
	return out, nil
}

// instanceAttribute is what a filter compares.
func instanceAttribute(l *database.Sight, i *spec.Instance, filter string) []string {
	switch filter {
	case "db-instance-id":
		return []string{i.Name, i.ARN("db", i.Name)}
	case "dbi-resource-id":
		return []string{i.ResourceID}
	case "engine":
		return []string{i.Engine}
	case "db-cluster-id":
		if c, ok := l.Cluster[i.Cluster]; ok {
			return []string{c.Name, c.ARN("cluster", c.Name)}
		}
	}
	return nil
}
