package instance

import (
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Restored is the record of a new instance with the data that were chosen, and all writes that
// belong to it but that of the record itself. It is for callers that ask for what RDS has no action
// for; it refuses what the actions refuse. in is what shall be unlike the database as it was.
func Restored(l *database.Sight, c front.Call, from restore.Choice, in *rds.RestoreDBInstanceFromDBSnapshotMessage) (spec.Instance, []state.Op, error) {
	i, ops, err := newRestored(l, c, from, in, nil)
	if err != nil {
		return i, nil, err
	}
	return add(l, c, i, ops)
}
