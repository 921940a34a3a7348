package restore

import (
	"cmp"

	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/automated"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/rds/snapshot"
)

// spared refuses data that the caller's policies deny, by the names that RDS's own actions have for
// them: a policy that denies a database, or its automated backups, denies a copy of its data, too.
func spared(c front.Call, from restore.Choice) error {
	of, kind, kept := from.Common(), "db", automated.Instance
	if from.Cluster != nil {
		kind, kept = "cluster", automated.Cluster
	}
	if err := c.Spared(of.ARN(kind, of.Name)); err != nil || from.Live {
		return err
	}
	return c.Spared(kept.ARNOf(of.Scope, from.Database))
}

// sparedSnapshot refuses a snapshot that the caller's policies deny.
func sparedSnapshot(c front.Call, r snapshot.Record) error {
	kind := snapshot.Instance
	if r.Value.Cluster != nil {
		kind = snapshot.Cluster
	}
	return c.Spared(r.Value.ARN(kind.ARN, r.Value.Name))
}

// sparedNew refuses a name for what is made that the caller's policies deny.
func sparedNew(c front.Call, from restore.Choice, name string) error {
	kind := "db"
	if from.Cluster != nil {
		kind = "cluster"
	}
	return c.Spared(c.ARN(kind, cmp.Or(name, "*")))
}
