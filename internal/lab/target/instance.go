package target

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/host/pace"
	"howdah/internal/lab/experiment"
)

const (
	// available is the status of what is ready.
	available = "available"
	// patience is how long a database may take to be made or changed.
	patience = 20 * time.Minute
	// lookEvery is the pause between two looks.
	lookEvery = 150 * time.Millisecond
)

// make makes the database as it is wanted.
func (h *Howdah) make(ctx context.Context, w experiment.Wanted) error {
	h.tell("make the database")
	if err := h.makeGroup(ctx, w); err != nil {
		return err
	}
	var err error
	if w.Cluster {
		err = h.makeCluster(ctx, w)
	} else {
		err = h.makeInstance(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFails, err)
	}
	return h.settle(ctx, w)
}

func (h *Howdah) makeInstance(ctx context.Context, w experiment.Wanted) error {
	name := h.record.Identifier
	kind, iops := storage(w)
	in := &rds.CreateDBInstanceMessage{
		DBInstanceIdentifier: &name, Engine: new("postgres"), DBInstanceClass: &w.Class, AllocatedStorage: number(w.Storage),
		StorageType: &kind, Iops: iops, MultiAZ: &w.MultiAZ, MasterUsername: new(user), MasterUserPassword: &h.password,
		BackupRetentionPeriod: number(w.Backups), DBParameterGroupName: h.group(w), Tags: h.tags(w),
	}
	return h.API.RDS(ctx, "CreateDBInstance", in, &rds.CreateDBInstanceResult{})
}

// storage is the type of storage that has these sizes, and the IOPS that are asked for.
func storage(w experiment.Wanted) (kind string, iops *int32) {
	switch {
	case w.IOPS > 0 && w.Storage >= 100:
		return "io1", number(w.IOPS)
	case w.IOPS > 0:
		return "gp3", number(w.IOPS)
	case w.Storage < 20:
		return "standard", nil
	}
	return "gp2", nil
}

func number(n int) *int32 { return new(int32(n)) } //nolint:gosec // package experiment bounds them

// warmTag turns cluster cache management of an instance on.
const warmTag = "howdah:warm-standby"

func (h *Howdah) tags(w experiment.Wanted) []rds.Tag {
	all := []rds.Tag{{Key: new(Tag), Value: &h.record.Identifier}}
	if w.Warm && !w.Cluster {
		all = append(all, rds.Tag{Key: new(warmTag), Value: new("true")})
	}
	return all
}

// modify changes what can be changed of a database that is there.
func (h *Howdah) modify(ctx context.Context, w experiment.Wanted) error {
	h.tell("change the database")
	var err error
	if w.Cluster {
		err = h.modifyCluster(ctx, w)
	} else {
		err = h.modifyInstance(ctx, w)
	}
	if err != nil {
		return fmt.Errorf("change the lab's database: %w", err)
	}
	return h.settle(ctx, w)
}

func (h *Howdah) modifyInstance(ctx context.Context, w experiment.Wanted) error {
	in := &rds.ModifyDBInstanceMessage{DBInstanceIdentifier: &h.record.Identifier, ApplyImmediately: new(true)}
	changes := false
	if w.Class != h.now.Class {
		in.DBInstanceClass, changes = &w.Class, true
	}
	if w.MultiAZ != h.now.MultiAZ {
		in.MultiAZ, changes = &w.MultiAZ, true
	}
	if w.Storage != h.now.Storage || w.IOPS != h.now.IOPS {
		kind, iops := storage(w)
		in.StorageType, in.Iops, in.AllocatedStorage, changes = &kind, iops, number(w.Storage), true
	}
	if changes {
		if err := h.API.RDS(ctx, "ModifyDBInstance", in, &rds.ModifyDBInstanceResult{}); err != nil {
			return err
		}
	}
	if w.Warm != h.now.Warm {
		return h.warmInstance(ctx, w.Warm)
	}
	return nil
}

func (h *Howdah) warmInstance(ctx context.Context, warm bool) error {
	i, err := h.instance(ctx, h.record.Identifier)
	if err != nil {
		return err
	}
	if warm {
		in := &rds.AddTagsToResourceMessage{ResourceName: i.DBInstanceArn, Tags: []rds.Tag{{Key: new(warmTag), Value: new("true")}}}
		return h.API.RDS(ctx, "AddTagsToResource", in, nil)
	}
	return h.API.RDS(ctx, "RemoveTagsFromResource", &rds.RemoveTagsFromResourceMessage{ResourceName: i.DBInstanceArn, TagKeys: []string{warmTag}}, nil)
}

// settle waits until the database is as it is wanted, with its replicas, and finds its endpoint.
func (h *Howdah) settle(ctx context.Context, w experiment.Wanted) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h.tell("wait for the database")
	var err error
	if w.Cluster {
		err = h.settleCluster(ctx)
	} else {
		err = h.settleInstance(ctx, w)
	}
	if err != nil {
		return err
	}
	h.now = w
	h.tell("wait for standbys")
	return h.Whole(ctx)
}

func (h *Howdah) settleInstance(ctx context.Context, w experiment.Wanted) error {
	if err := h.waitInstance(ctx, h.record.Identifier); err != nil {
		return err
	}
	i, err := h.instance(ctx, h.record.Identifier)
	if err != nil {
		return err
	}
	h.resource = value(i.DbiResourceId)
	if h.server, err = h.connects(h.API.Reach(ctx, endpointOf(i.Endpoint))); err != nil {
		return err
	}
	return h.replicas(ctx, w)
}

// replicas makes or removes read replicas, until there are as many as are wanted.
func (h *Howdah) replicas(ctx context.Context, w experiment.Wanted) error {
	all, err := h.ours(ctx)
	if err != nil {
		return err
	}
	for n := 1; n <= max(w.Standbys, h.now.Standbys); n++ {
		name := h.replica(n)
		there := slices.Contains(all, name)
		switch {
		case n <= w.Standbys && !there:
			h.tell(fmt.Sprintf("make standby %d of %d", n, w.Standbys))
			in := &rds.CreateDBInstanceReadReplicaMessage{DBInstanceIdentifier: &name, SourceDBInstanceIdentifier: &h.record.Identifier, DBInstanceClass: &w.Class, Tags: h.tags(experiment.Wanted{})}
			if err := h.API.RDS(ctx, "CreateDBInstanceReadReplica", in, &rds.CreateDBInstanceReadReplicaResult{}); err != nil {
				return fmt.Errorf("make standby %d: %w", n, err)
			}
		case n > w.Standbys && there:
			if err := h.deleteInstance(ctx, name); err != nil {
				return err
			}
		}
	}
	for n := 1; n <= w.Standbys; n++ {
		if err := h.waitInstance(ctx, h.replica(n)); err != nil {
			return err
		}
	}
	return nil
}

func (h *Howdah) replica(n int) string { return fmt.Sprintf("%s-s%d", h.record.Identifier, n) }

// waitInstance waits until an instance is available, with nothing pending.
func (h *Howdah) waitInstance(ctx context.Context, name string) error {
	return h.poll(ctx, func() (bool, error) {
		i, err := h.instance(ctx, name)
		if err != nil {
			return false, err
		}
		status := value(i.DBInstanceStatus)
		if strings.Contains(status, "incompatible") || status == "failed" || status == "storage-full" {
			return false, fmt.Errorf("%w: %s is %s", ErrFails, name, status)
		}
		return status == available && endpointOf(i.Endpoint) != "", nil
	})
}

// poll looks until it is done. While the API is away, which it is while it is started anew, it goes on.
func (h *Howdah) poll(ctx context.Context, done func() (bool, error)) error {
	for {
		ok, err := done()
		switch {
		case err != nil && !errors.Is(err, client.ErrUnreachable):
			return err
		case ok && err == nil:
			return nil
		}
		if !pace.Sleep(ctx, lookEvery) {
			return fmt.Errorf("wait for the lab's database: %w", ctx.Err())
		}
	}
}

// instance describes an instance of ours. It returns ErrGone if there is none.
func (h *Howdah) instance(ctx context.Context, name string) (rds.DBInstance, error) {
	var out rds.DBInstanceMessage
	err := h.API.RDS(ctx, "DescribeDBInstances", &rds.DescribeDBInstancesMessage{DBInstanceIdentifier: &name}, &out)
	if client.IsCode(err, rds.ErrDBInstanceNotFound) || err == nil && len(out.DBInstances) == 0 {
		return rds.DBInstance{}, fmt.Errorf("%s: %w", name, ErrGone)
	}
	if err != nil {
		return rds.DBInstance{}, err
	}
	i := out.DBInstances[0]
	if !h.tagged(i.TagList) {
		return i, fmt.Errorf("instance %s: %w", name, ErrNotOurs)
	}
	return i, nil
}

func (h *Howdah) tagged(tags []rds.Tag) bool {
	return slices.ContainsFunc(tags, func(t rds.Tag) bool { return value(t.Key) == Tag && value(t.Value) == h.record.Identifier })
}

// serverEnd is what the name of an instance has after the identifier: see replica and member.
var serverEnd = regexp.MustCompile(`^(-s?[0-9]+)?$`)

// names reports whether a run gives an instance this name.
func (h *Howdah) names(name string) bool {
	end, ok := strings.CutPrefix(name, h.record.Identifier)
	return ok && serverEnd.MatchString(end)
}

// ours lists the names of this run's instances, replicas first.
func (h *Howdah) ours(ctx context.Context) (names []string, err error) {
	var marker *string
	for {
		var out rds.DBInstanceMessage
		if err := h.API.RDS(ctx, "DescribeDBInstances", &rds.DescribeDBInstancesMessage{Marker: marker}, &out); err != nil {
			return nil, err
		}
		for _, i := range out.DBInstances {
			if name := value(i.DBInstanceIdentifier); h.tagged(i.TagList) && h.names(name) {
				names = append(names, name)
			}
		}
		if marker = out.Marker; value(marker) == "" {
			break
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) })
	return names, nil
}

// removeServers removes all instances and clusters of this run, and waits until they are gone.
func (h *Howdah) removeServers(ctx context.Context) error {
	names, err := h.ours(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := h.deleteInstance(ctx, name); err != nil {
			return err
		}
	}
	h.now = experiment.Wanted{}
	return h.removeCluster(ctx)
}

// deleteInstance deletes an instance of ours without a final snapshot, and waits until it is gone.
func (h *Howdah) deleteInstance(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in := &rds.DeleteDBInstanceMessage{DBInstanceIdentifier: &name, SkipFinalSnapshot: new(true), DeleteAutomatedBackups: new(true)}
	asked := false
	err := h.poll(ctx, func() (bool, error) {
		if _, err := h.instance(ctx, name); err != nil {
			return errors.Is(err, ErrGone), ignore(err, ErrGone)
		}
		if asked {
			return false, nil
		}
		// While something else goes on it cannot be deleted, and soon it can.
		err := h.API.RDS(ctx, "DeleteDBInstance", in, &rds.DeleteDBInstanceResult{})
		asked = err == nil
		if client.IsCode(err, rds.ErrInvalidDBInstanceState) || client.IsCode(err, rds.ErrDBInstanceNotFound) {
			err = nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	return nil
}

func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// value returns what a pointer of an answer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
