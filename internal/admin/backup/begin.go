package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/aws/front"
	"howdah/internal/model/backup"
	"howdah/internal/model/event"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/view"
)

// show returns how the backups of a database are.
func (s *service) show(ctx context.Context, c front.Call, in admin.BackupsRequest) (admin.BackupStatus, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.BackupStatus{}, err
	}
	d, err := s.find(c, in.Name)
	if err != nil {
		return admin.BackupStatus{}, err
	}
	return Look(s.Looks).of(d).status(s.names(), users(s.Cache)), nil
}

// makeNow begins a backup that belongs to the automated ones. It holds nobody up, as they do not.
func (s *service) makeNow(ctx context.Context, c front.Call, in admin.BackupBeginRequest) (admin.BackupBegun, error) {
	kind := backup.Take
	kind.Excludes = nil
	return s.begin(ctx, c, in, "backup-", kind, func(now standing) (any, error) {
		if o := now.working(backup.Take, backup.Final); o != nil {
			return nil, underWay("A backup of %s is being made already, by the operation %s.", now, o)
		}
		return backup.TakeArgs{Repository: now.repository, Automated: true}, mayBackUp(now)
	})
}

// drillNow begins a drill of the newest backup.
func (s *service) drillNow(ctx context.Context, c front.Call, in admin.BackupBeginRequest) (admin.BackupBegun, error) {
	return s.begin(ctx, c, in, "drill-", backup.Drill, func(now standing) (any, error) {
		if o := now.working(backup.Drill); o != nil {
			return nil, underWay("The backups of %s are being tried already, by the operation %s.", now, o)
		}
		if len(now.all) == 0 {
			hint := "make one: howdah backup now " + now.Common.Name
			if o := now.working(backup.Take, backup.Final); o != nil {
				hint = "one is being made: howdah operations show " + o.ID
			}
			return nil, refused(hint, "There is no backup of %s in the repository %s that could be tried.", now.Common.Name, now.repository)
		}
		return backup.DrillArgs{Repository: now.repository, Asked: true}, nil
	})
}

func refused(hint, format string, args ...any) error {
	return admin.NewError(admin.CodeBackupRefused, fmt.Sprintf(format, args...), hint)
}

func underWay(format string, now standing, o *operation.Record) error {
	return refused("howdah operations show "+o.ID, format, now.Common.Name, o.ID)
}

// mayBackUp refuses a backup that could not be made now, or that nothing would keep.
func mayBackUp(now standing) error {
	name := now.Common.Name
	switch {
	case now.Common.BackupRetention == 0:
		return refused("make a snapshot of it, or set its BackupRetentionPeriod to 1 or more",
			"Automated backups of %s are off, so nothing would keep the backup.", name)
	case now.held:
		return refused("howdah home held", "%s is not taken over yet since the home was restored.", name)
	case now.Common.Stopped:
		return refused("howdah db start "+name, "%s is stopped.", name)
	case !now.Layout.Created:
		return refused("howdah db show "+name, "%s has not been available yet.", name)
	}
	return nil
}

// begin begins an operation on the backups of a database, unless it was begun before. prefix is what
// its id begins with: ids of the keeper begin otherwise. args makes its arguments, or refuses it.
func (s *service) begin(
	ctx context.Context, c front.Call, in admin.BackupBeginRequest, prefix string, kind operation.Kind, args func(standing) (any, error),
) (out admin.BackupBegun, err error) {
	if !operation.ValidID(in.ID) || !strings.HasPrefix(in.ID, prefix) {
		return out, admin.NewError(admin.CodeInvalidRequest, fmt.Sprintf("%.64q is no id for this operation.", in.ID),
			"it begins with "+prefix+", and has at most 63 lower-case letters, digits and hyphens")
	}
	err = s.Retry(ctx, func() error {
		d, err := s.find(c, in.Name)
		if err != nil {
			return err
		}
		if r, err := state.View[operation.Record](s.Cache, state.Operation(in.ID)); err == nil {
			if r.Value.Kind != kind.Name || r.Value.About.Database != d.Want.ID {
				return admin.NewError(admin.CodeInvalidRequest, fmt.Sprintf("The operation %s is another one.", in.ID), "choose another id")
			}
			out = begun(*r.Value)
			return nil
		}
		now := Look(s.Looks).of(d)
		if err := mayWork(now); err != nil {
			return err
		}
		arguments, err := args(now)
		if err != nil {
			return err
		}
		r, err := operation.New(in.ID, kind, aboutOf(d), arguments, c.Now)
		if err != nil {
			return err
		}
		out = begun(r)
		return s.write(ctx, c, d, r)
	})
	return out, err
}

// mayWork refuses what nothing can be done about the backups of.
func mayWork(now standing) error {
	name := now.Common.Name
	switch {
	case now.Common.Deleting || now.Common.Final != "":
		return refused("", "%s is being deleted.", name)
	case now.Follows():
		return refused("work with its source: howdah db show "+name, "%s is a read replica, which has no backups of its own.", name)
	case now.repository == "":
		return refused("howdah repository add", "This home has no repository for backups.")
	}
	return nil
}

// write commits the record of an operation, if nobody changed or deleted the database meanwhile.
func (s *service) write(ctx context.Context, c front.Call, d database.Subject, r operation.Record) error {
	op, err := view.Begin(s.Cache, r)
	if errors.Is(err, operation.ErrTooMany) {
		return refused("see `howdah operations list`, and try again when some have ended", "Too many operations are under way: %s.", err)
	}
	if err != nil {
		return err
	}
	unchanged, err := s.unchanged(d)
	if err != nil {
		return err
	}
	s.Log.Info("begin operation", "id", r.ID, "kind", r.Kind, "database", r.About.Name, "by", c.Who.Key)
	return s.Commit(ctx, op, unchanged)
}

// unchanged returns the condition that the record of a database is as it was looked at.
func (s *service) unchanged(d database.Subject) (state.Op, error) {
	if d.Cluster != nil {
		r, err := state.View[spec.Cluster](s.Cache, state.Cluster(d.Common.Account, d.Common.Region, d.Common.Name))
		if err != nil || r.Value.ResourceID != d.Want.ID {
			return state.Op{}, state.ErrConflict
		}
		return state.Unchanged(r.Key, r.Revision), nil
	}
	r, err := state.View[spec.Instance](s.Cache, state.Instance(d.Common.Account, d.Common.Region, d.Common.Name))
	if err != nil || r.Value.ResourceID != d.Want.ID {
		return state.Op{}, state.ErrConflict
	}
	return state.Unchanged(r.Key, r.Revision), nil
}

func aboutOf(d database.Subject) operation.About {
	kind := event.Instance
	if d.Cluster != nil {
		kind = event.Cluster
	}
	return operation.About{Scope: d.Common.Scope, Type: kind, Name: d.Common.Name, Database: d.Want.ID}
}

func begun(r operation.Record) admin.BackupBegun {
	return admin.BackupBegun{Operation: r.ID, Kind: r.Kind, Database: r.About.Name, ResourceID: r.About.Database, Began: r.Began}
}
