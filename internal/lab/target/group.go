package target

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	groups, err := h.instanceGroups(ctx)
	if err != nil {
		return err
	}
	clusters, err := h.clusterGroups(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range groups {
		errs = append(errs, h.API.RDS(ctx, "DeleteDBParameterGroup", &rds.DeleteDBParameterGroupMessage{DBParameterGroupName: &name}, nil))
	}
	for _, name := range clusters {
		errs = append(errs, h.API.RDS(ctx, "DeleteDBClusterParameterGroup", &rds.DeleteDBClusterParameterGroupMessage{DBClusterParameterGroupName: &name}, nil))
	}
	return errors.Join(errs...)
}

// described is a parameter group as RDS describes it, of instances or of clusters.
type described struct{ name, arn *string }

// instanceGroups lists this run's parameter groups of instances.
func (h *Howdah) instanceGroups(ctx context.Context) ([]string, error) {
	return h.ourGroups(ctx, func(marker *string) (page []described, next *string, err error) {
		var out rds.DBParameterGroupsMessage
		err = h.API.RDS(ctx, "DescribeDBParameterGroups", &rds.DescribeDBParameterGroupsMessage{Marker: marker}, &out)
		for _, g := range out.DBParameterGroups {
			page = append(page, described{g.DBParameterGroupName, g.DBParameterGroupArn})
		}
		return page, out.Marker, err
	})
}

// clusterGroups lists this run's parameter groups of clusters.
func (h *Howdah) clusterGroups(ctx context.Context) ([]string, error) {
	return h.ourGroups(ctx, func(marker *string) (page []described, next *string, err error) {
		var out rds.DBClusterParameterGroupsMessage
		err = h.API.RDS(ctx, "DescribeDBClusterParameterGroups", &rds.DescribeDBClusterParameterGroupsMessage{Marker: marker}, &out)
		for _, g := range out.DBClusterParameterGroups {
			page = append(page, described{g.DBClusterParameterGroupName, g.DBClusterParameterGroupArn})
		}
		return page, out.Marker, err
	})
}

// ourGroups lists the names of this run's groups, through all pages.
func (h *Howdah) ourGroups(ctx context.Context, page func(marker *string) (groups []described, next *string, err error)) (names []string, err error) {
	for marker := (*string)(nil); ; {
		groups, next, err := page(marker)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			ours, err := h.ownsGroup(ctx, value(g.name), g.arn)
			if err != nil {
				return nil, err
			}
			if ours {
				names = append(names, value(g.name))
			}
		}
		if marker = next; value(marker) == "" {
			return names, nil
		}
	}
}

// groupEnd is what the name of a group has after the identifier: see group.
var groupEnd = regexp.MustCompile(`^-[0-9a-f]{6}$`)

// ownsGroup reports whether a group has a name that this run gives, and this run's tag.
func (h *Howdah) ownsGroup(ctx context.Context, name string, arn *string) (bool, error) {
	end, ok := strings.CutPrefix(name, h.record.Identifier)
	if !ok || !groupEnd.MatchString(end) || arn == nil {
		return false, nil
	}
	var out rds.TagListMessage
	if err := h.API.RDS(ctx, "ListTagsForResource", &rds.ListTagsForResourceMessage{ResourceName: arn}, &out); err != nil {
		return false, err
	}
	return h.tagged(out.TagList), nil
}
