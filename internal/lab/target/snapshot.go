package target

import (
	"context"
	"errors"
	"fmt"

	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/lab/experiment"
)

// ErrRestore says that a server cannot be made of a snapshot.
var ErrRestore = errors.New("it cannot be made of a snapshot")

// Snapshot keeps the data as they are now, for Restore.
func (h *Howdah) Snapshot(ctx context.Context) error {
	if h.now.Cluster {
		return fmt.Errorf("%w: it is a cluster", ErrRestore)
	}
	h.tell("take a snapshot of the data")
	if err := h.removeSnapshot(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := h.snapshotName()
	in := &rds.CreateDBSnapshotMessage{DBSnapshotIdentifier: &name, DBInstanceIdentifier: &h.record.Identifier, Tags: h.tags(experiment.Wanted{})}
	if err := h.API.RDS(ctx, "CreateDBSnapshot", in, &rds.CreateDBSnapshotResult{}); err != nil {
		return fmt.Errorf("take a snapshot of the data: %w", err)
	}
	err := h.poll(ctx, func() (bool, error) {
		s, err := h.snapshot(ctx, name)
		if err == nil && (s == nil || value(s.Status) == "failed") {
			err = fmt.Errorf("%w: the snapshot failed", ErrFails)
		}
		return err == nil && value(s.Status) == available, err
	})
	if err != nil {
		return fmt.Errorf("take a snapshot of the data: %w", err)
	}
	h.record.Snapshot = name
	return h.save()
}

// HasData reports whether there is a snapshot of the data.
func (h *Howdah) HasData() bool { return h.record.Snapshot != "" }

// Restore makes the database anew of the snapshot, as it is wanted.
func (h *Howdah) Restore(ctx context.Context, w experiment.Wanted) error {
	if w.Cluster || !h.HasData() {
		return fmt.Errorf("%w: there is none, or it is a cluster", ErrRestore)
	}
	h.tell("restore the snapshot")
	if err := h.removeServers(ctx); err != nil {
		return err
	}
	if err := h.makeGroup(ctx, w); err != nil {
		return err
	}
	name := h.record.Identifier
	kind, iops := storage(w)
	in := &rds.RestoreDBInstanceFromDBSnapshotMessage{
		DBInstanceIdentifier: &name, DBSnapshotIdentifier: &h.record.Snapshot, DBInstanceClass: &w.Class, MultiAZ: &w.MultiAZ,
		StorageType: &kind, Iops: iops, AllocatedStorage: number(w.Storage), DBParameterGroupName: h.group(w), Tags: h.tags(w),
		BackupRetentionPeriod: number(w.Backups),
	}
	if err := h.API.RDS(ctx, "RestoreDBInstanceFromDBSnapshot", in, &rds.RestoreDBInstanceFromDBSnapshotResult{}); err != nil {
		return fmt.Errorf("restore the snapshot: %w", err)
	}
	return h.settle(ctx, w)
}

func (h *Howdah) snapshotName() string { return h.record.Identifier + "-data" }

// hasSnapshot reports whether the snapshot that is remembered is there. If it is not, it is forgotten.
func (h *Howdah) hasSnapshot(ctx context.Context) (bool, error) {
	if h.record.Snapshot == "" {
		return false, nil
	}
	s, err := h.snapshot(ctx, h.record.Snapshot)
	if err != nil {
		return false, err
	}
	// The data have the password that the database had then.
	old, err := h.oldPassword()
	if err != nil || s != nil && value(s.Status) == available && old != "" {
		return err == nil, err
	}
	h.record.Snapshot = ""
	return false, h.save()
}

// snapshot describes a snapshot of ours, or returns nil.
func (h *Howdah) snapshot(ctx context.Context, name string) (*rds.DBSnapshot, error) {
	var out rds.DBSnapshotMessage
	err := h.API.RDS(ctx, "DescribeDBSnapshots", &rds.DescribeDBSnapshotsMessage{DBSnapshotIdentifier: &name}, &out)
	if client.IsCode(err, rds.ErrDBSnapshotNotFound) || err == nil && len(out.DBSnapshots) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s := out.DBSnapshots[0]
	if !h.tagged(s.TagList) {
		return nil, fmt.Errorf("snapshot %s: %w", name, ErrNotOurs)
	}
	return &s, nil
}

// removeSnapshot removes the snapshot of this run, also one that was never whole.
func (h *Howdah) removeSnapshot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := h.snapshotName()
	err := h.poll(ctx, func() (bool, error) {
		s, err := h.snapshot(ctx, name)
		if err != nil || s == nil {
			return err == nil, err
		}
		err = h.API.RDS(ctx, "DeleteDBSnapshot", &rds.DeleteDBSnapshotMessage{DBSnapshotIdentifier: &name}, &rds.DeleteDBSnapshotResult{})
		if client.IsCode(err, rds.ErrInvalidDBSnapshotState) || client.IsCode(err, rds.ErrDBSnapshotNotFound) {
			err = nil
		}
		return false, err
	})
	if err != nil {
		return fmt.Errorf("remove the snapshot of the lab's data: %w", err)
	}
	if h.record.Snapshot != "" {
		h.record.Snapshot = ""
		return h.save()
	}
	return nil
}
