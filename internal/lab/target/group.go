package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/lab/experiment"
)

// parameters are those of the group that a server needs; none: it needs no group of its own.
func parameters(w experiment.Wanted) map[string]string {
	all := maps.Clone(w.Parameters)
	if w.Cluster && w.Warm {
		if all == nil {
			all = map[string]string{}
		}
		all[warmParameter] = "1"
	}
	return all
}

// warmParameter turns cluster cache management of a cluster on.
const warmParameter = "apg_ccm_enabled"

// group is the name of a server's parameter group, by what is in it; nil: the default one.
func (h *Howdah) group(w experiment.Wanted) *string {
	all := parameters(w)
	if len(all) == 0 {
		return nil
	}
	text, err := json.Marshal(all) // sorted
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(text)
	return new(h.record.Identifier + "-" + hex.EncodeToString(sum[:3]))
}

// makeGroup makes the parameter group that a server needs. It is idempotent.
func (h *Howdah) makeGroup(ctx context.Context, w experiment.Wanted) error {
	name := h.group(w)
	if name == nil {
		return nil
	}
	if err := h.fillGroup(ctx, w, *name); err != nil {
		return fmt.Errorf("make the parameter group of the lab's database: %w", err)
	}
	return nil
}

func (h *Howdah) fillGroup(ctx context.Context, w experiment.Wanted, name string) error {
	family, err := h.family(ctx, engine(w))
	if err != nil {
		return err
	}
	var all []rds.Parameter
	set := parameters(w)
	for _, key := range slices.Sorted(maps.Keys(set)) {
		all = append(all, rds.Parameter{ParameterName: &key, ParameterValue: new(set[key]), ApplyMethod: new("pending-reboot")})
	}
	description := "of an experiment of howdah lab"
	if w.Cluster {
		in := &rds.CreateDBClusterParameterGroupMessage{DBClusterParameterGroupName: &name, DBParameterGroupFamily: &family, Description: &description, Tags: h.tags(experiment.Wanted{})}
		err = h.API.RDS(ctx, "CreateDBClusterParameterGroup", in, &rds.CreateDBClusterParameterGroupResult{})
	} else {
		in := &rds.CreateDBParameterGroupMessage{DBParameterGroupName: &name, DBParameterGroupFamily: &family, Description: &description, Tags: h.tags(experiment.Wanted{})}
		err = h.API.RDS(ctx, "CreateDBParameterGroup", in, &rds.CreateDBParameterGroupResult{})
	}
	if err != nil && !client.IsCode(err, rds.ErrDBParameterGroupAlreadyExists) {
		return err
	}
	const most = 20 // as on RDS
	for some := range slices.Chunk(all, most) {
		if w.Cluster {
			in := &rds.ModifyDBClusterParameterGroupMessage{DBClusterParameterGroupName: &name, Parameters: some}
			err = h.API.RDS(ctx, "ModifyDBClusterParameterGroup", in, &rds.DBClusterParameterGroupNameMessage{})
		} else {
			in := &rds.ModifyDBParameterGroupMessage{DBParameterGroupName: &name, Parameters: some}
			err = h.API.RDS(ctx, "ModifyDBParameterGroup", in, &rds.DBParameterGroupNameMessage{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func engine(w experiment.Wanted) string {
	if w.Cluster {
		return "aurora-postgresql"
	}
	return "postgres"
}

var errVersion = errors.New("no version of the engine is installed")

// family is that of the version which an instance gets that names none.
func (h *Howdah) family(ctx context.Context, engine string) (string, error) {
	var out rds.DBEngineVersionMessage
	if err := h.API.RDS(ctx, "DescribeDBEngineVersions", &rds.DescribeDBEngineVersionsMessage{Engine: &engine, DefaultOnly: new(true)}, &out); err != nil {
		return "", err
	}
	if len(out.DBEngineVersions) == 0 {
		return "", fmt.Errorf("%w: %s", errVersion, engine)
	}
	return value(out.DBEngineVersions[0].DBParameterGroupFamily), nil
}

// removeGroups removes this run's parameter groups.
func (h *Howdah) removeGroups(ctx context.Context) error {
	var out rds.DBParameterGroupsMessage
	if err := h.API.RDS(ctx, "DescribeDBParameterGroups", &rds.DescribeDBParameterGroupsMessage{}, &out); err != nil {
		return err
	}
	var errs []error
	for _, g := range out.DBParameterGroups {
		if name := value(g.DBParameterGroupName); strings.HasPrefix(name, h.record.Identifier+"-") {
			errs = append(errs, h.API.RDS(ctx, "DeleteDBParameterGroup", &rds.DeleteDBParameterGroupMessage{DBParameterGroupName: &name}, nil))
		}
	}
	var clusters rds.DBClusterParameterGroupsMessage
	if err := h.API.RDS(ctx, "DescribeDBClusterParameterGroups", &rds.DescribeDBClusterParameterGroupsMessage{}, &clusters); err != nil {
		return err
	}
	for _, g := range clusters.DBClusterParameterGroups {
		if name := value(g.DBClusterParameterGroupName); strings.HasPrefix(name, h.record.Identifier+"-") {
			errs = append(errs, h.API.RDS(ctx, "DeleteDBClusterParameterGroup", &rds.DeleteDBClusterParameterGroupMessage{DBClusterParameterGroupName: &name}, nil))
		}
	}
	return errors.Join(errs...)
}
