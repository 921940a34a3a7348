package automated

import (
	"errors"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/control/plan"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Retain are the writes with which the automated backups of a database stay when it is deleted: of
// an instance, or of a cluster. One that has none leaves none.
func Retain(l *look.Look, c front.Call, i *spec.Instance, cluster *spec.Cluster) ([]state.Op, error) {
	var of spec.Common
	var facts plan.Facts
	if cluster != nil {
		of, facts = cluster.Common, l.FactsOfCluster(*cluster)
	} else {
		of, facts = i.Common, l.FactsOf(*i)
	}
	r, err := state.Load[backup.Automated](l.Cache, state.Automated(of.ResourceID))
	if errors.Is(err, state.ErrNotFound) || err == nil && of.BackupRetention == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a := r.Value
	a.Keep(i, cluster)
	a.Name, a.Retention = of.Name, of.BackupRetention
	a.Retained, a.Deleted = true, c.Now
	if until := restore.Latest(facts); until.After(a.Until) {
		a.Until = until
	}
	return []state.Op{state.Swap(r.Key, r.Revision, a)}, nil
}
