package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
)

// topTier is the promotion tier of the pair whose caches are kept alike, and otherTier that of the
// others.
const topTier, otherTier = 0, 1

func (h *Howdah) makeCluster(ctx context.Context, w experiment.Wanted) error {
	name := h.record.Identifier
	retention := max(w.Backups, 1) // a cluster has backups
	in := &rds.CreateDBClusterMessage{
		DBClusterIdentifier: &name, Engine: new(engine(w)), MasterUsername: new(user), MasterUserPassword: &h.password,
		DBClusterParameterGroupName: h.group(w), Tags: h.tags(w), BackupRetentionPeriod: number(retention),
	}
	if err := h.API.RDS(ctx, "CreateDBCluster", in, &rds.CreateDBClusterResult{}); err != nil {
		return err
	}
	for n := range w.Standbys + 1 {
		if err := h.makeMember(ctx, w, n+1); err != nil {
			return err
		}
	}
	return nil
}

// makeMember makes an instance of the cluster. The first two are a pair, if there is to be one.
func (h *Howdah) makeMember(ctx context.Context, w experiment.Wanted, n int) error {
	tier := otherTier
	if n <= 2 {
		tier = topTier
	}
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: new(h.member(n)), DBClusterIdentifier: &h.record.Identifier, Engine: new(engine(w)), DBInstanceClass: &w.Class,
		PromotionTier: number(tier), Tags: h.tags(w),
	}
	return h.API.RDS(ctx, "CreateDBInstance", in, &rds.CreateDBInstanceResult{})
}

// member is the name of an instance of the cluster.
func (h *Howdah) member(n int) string { return fmt.Sprintf("%s-%d", h.record.Identifier, n) }

// modifyCluster changes the class and the number of the cluster's instances, and its parameters.
func (h *Howdah) modifyCluster(ctx context.Context, w experiment.Wanted) error {
	if w.Warm != h.now.Warm {
		if err := h.warmCluster(ctx, w); err != nil {
			return err
		}
	}
	for n := 1; n <= max(w.Standbys, h.now.Standbys)+1; n++ {
		var err error
		switch {
		case n > h.now.Standbys+1:
			err = h.makeMember(ctx, w, n)
		case n > w.Standbys+1:
			err = h.deleteInstance(ctx, h.member(n))
		case w.Class != h.now.Class:
			in := &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: new(h.member(n)), ApplyImmediately: new(true), DBInstanceClass: &w.Class}
			err = h.API.RDS(ctx, "ModifyDBInstance", in, &rds.ModifyDBInstanceResult{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// warmCluster gives the cluster the group that has the parameter, or the one that has it not.
func (h *Howdah) warmCluster(ctx context.Context, w experiment.Wanted) error {
	if err := h.makeGroup(ctx, w); err != nil {
		return err
	}
	group := h.group(w)
	if group == nil {
		family, err := h.family(ctx, engine(w))
		if err != nil {
			return err
		}
		group = new("default." + family)
	}
	in := &rds.ModifyDBClusterMessage{DBClusterIdentifier: &h.record.Identifier, DBClusterParameterGroupName: group, ApplyImmediately: new(true)}
	if err := h.API.RDS(ctx, "ModifyDBCluster", in, &rds.ModifyDBClusterResult{}); err != nil {
		return err
	}
	// A group that is new acts with the next restart.
	return h.Reboot(ctx)
}

func (h *Howdah) settleCluster(ctx context.Context) error {
	var c *rds.DBCluster
	err := h.poll(ctx, func() (bool, error) {
		var err error
		if c, err = h.cluster(ctx); err != nil {
			return false, err
		}
		if c == nil {
			return false, ErrGone
		}
		return value(c.Status) == available && value(c.Endpoint) != "", nil
	})
	if err != nil {
		return err
	}
	for _, m := range c.DBClusterMembers {
		if err := h.waitInstance(ctx, value(m.DBInstanceIdentifier)); err != nil {
			return err
		}
	}
	h.resource = value(c.DbClusterResourceId)
	h.server, err = h.connects(h.API.Reach(ctx, net.JoinHostPort(value(c.Endpoint), strconv.Itoa(int(value(c.Port))))))
	return err
}

// cluster describes the cluster of this run, or returns nil.
func (h *Howdah) cluster(ctx context.Context) (*rds.DBCluster, error) {
	var out rds.DBClusterMessage
	err := h.API.RDS(ctx, "DescribeDBClusters", &rds.DescribeDBClustersMessage{DBClusterIdentifier: &h.record.Identifier}, &out)
	if client.IsCode(err, rds.ErrDBClusterNotFound) || err == nil && len(out.DBClusters) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := out.DBClusters[0]
	if !h.tagged(c.TagList) {
		return nil, fmt.Errorf("cluster %s: %w", h.record.Identifier, ErrNotOurs)
	}
	return &c, nil
}

// removeCluster removes the cluster of this run, which has no instances any more, and waits until it is
// gone.
func (h *Howdah) removeCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in := &rds.DeleteDBClusterMessage{DBClusterIdentifier: &h.record.Identifier, SkipFinalSnapshot: new(true), DeleteAutomatedBackups: new(true)}
	asked := false
	return h.poll(ctx, func() (bool, error) {
		c, err := h.cluster(ctx)
		switch {
		case errors.Is(err, ErrNotOurs), err == nil && c == nil:
			return true, nil
		case err != nil, asked:
			return false, err
		}
		err = h.API.RDS(ctx, "DeleteDBCluster", in, &rds.DeleteDBClusterResult{})
		asked = err == nil
		if client.IsCode(err, rds.ErrInvalidDBClusterState) {
			err = nil
		}
		return false, err
	})
}

// Reader is the endpoint for reads: that of the cluster, or the first replica of an instance. Where nobody
// serves reads but the writer, it is the writer's.
func (h *Howdah) Reader(ctx context.Context) (address.Server, error) {
	if h.now.Cluster {
		c, err := h.cluster(ctx)
		if err != nil || c == nil || c.ReaderEndpoint == nil || c.Port == nil {
			return h.server, err
		}
		return h.connects(h.API.Reach(ctx, net.JoinHostPort(*c.ReaderEndpoint, strconv.Itoa(int(*c.Port)))))
	}
	nodes, err := h.Nodes(ctx)
	if err != nil || len(nodes) == 0 {
		return h.server, err
	}
	return nodes[0].Server, nil
}

// nodes lists the instances that serve reads, without the writer.
func (h *Howdah) nodes(ctx context.Context) (names []string, err error) {
	if !h.now.Cluster {
		for n := range h.now.Standbys {
			names = append(names, h.replica(n+1))
		}
		return names, nil
	}
	c, err := h.cluster(ctx)
	if err != nil || c == nil {
		return nil, err
	}
	for _, m := range c.DBClusterMembers {
		if !value(m.IsClusterWriter) {
			names = append(names, value(m.DBInstanceIdentifier))
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names, nil
}
