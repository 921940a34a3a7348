package snapshot

import (
	"context"
	"strconv"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/option"
	"howdah/internal/aws/wire"
	"howdah/internal/model/backup"
	"howdah/internal/state"
)

// modifyDBSnapshot changes the option group of a snapshot. Its version stays: a restored instance
// has the newest minor version of the same major one anyway.
func (s *service) modifyDBSnapshot(ctx context.Context, c front.Call, in *rds.ModifyDBSnapshotMessage) (*rds.ModifyDBSnapshotResult, error) {
	changed, err := s.change(ctx, c, Instance, in.DBSnapshotIdentifier, func(v *backup.Snapshot) ([]state.Op, error) {
		if v.State != backup.Available {
			return nil, wire.NewError(rds.ErrInvalidDBSnapshotState, "The snapshot %s is not in the available state: it is %s.", v.Name, v.State)
		}
		if asked := in.EngineVersion; asked != nil && *asked != v.Instance.Version && *asked != strconv.Itoa(v.Instance.Major) {
			return nil, wire.NewError(api.ErrInvalidParameterCombination,
				"Cannot upgrade the snapshot %s from the EngineVersion %s to %s: restore it, which gives the newest minor version of PostgreSQL %d.", v.Name, v.Instance.Version, *asked, v.Instance.Major)
		}
		if in.OptionGroupName == nil {
			return nil, nil
		}
		l, i := s.Of(c.Account), *v.Instance
		i.OptionGroup = *in.OptionGroupName
		err := option.Check(l.Look, &i.OptionGroup, i.Common)
		v.Instance = &i
		return nil, err
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBSnapshotResult{DBSnapshot: s.instanceOut(changed)}, nil
}
