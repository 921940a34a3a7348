package instance

import (
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/rds/database"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/rds/restore"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Beside is the record of a hidden instance like another one, with the data that were chosen, and all
// writes that belong to it but that of the record itself. The operation, by its id, is to put it in the
// place of the other one. It has an address of its own until then.
func Beside(l *database.Sight, c front.Call, of spec.Instance, from restore.Choice, operation string) (spec.Instance, []state.Op, error) {
	if err := takes(of, from); err != nil {
		return spec.Instance{}, nil, err
	}
	i := of
	i.Forget()
	i.ResourceID, i.Name, i.Created, i.Generation = look.NewResourceID("db-"), nameBeside(of.Name), c.Now, 1
	i.MadeBy, i.Expects, i.Origin = operation, of.Address, &from.Origin
	i.Address, i.Former, i.Public, i.StorageKey = "", nil, false, ""
	i.Change, i.ChangeStatus, i.ChangeEvents, i.Reboot, i.Restart, i.Failover, i.FailoverTarget = 0, "", nil, 0, 0, 0, ""
	i.Source, i.Promoted, i.DeletionProtection, i.Replaced = "", false, false, nil
	// The password is the one that the instance has now, whatever it was then.
	if from.Database != of.ResourceID {
		i.PasswordSerial = max(of.PasswordSerial, from.Common().PasswordSerial) + 1
	}
	ops, err := l.EncryptRestored(c, &i.Common, of.Scope, of.StorageKey, nil)
	if err != nil {
		return i, nil, err
	}
	if err := l.CanPlace(i.Common, plan.ForInstance(i, plan.Links{Groups: l.Groups})); err != nil {
		return i, nil, err
	}
	return add(l, c, i, append(ops, from.Unchanged...))
}

// takes refuses data that would be another database under the name of this one.
func takes(i spec.Instance, from restore.Choice) error {
	of := from.Common()
	other := func(what, its, theirs string) error {
		return wire.NewError(rds.ErrInvalidRestore, "%s cannot get these data in its place: its %s is %s, and theirs is %s. Restore them as a new database.", i.Name, what, its, theirs)
	}
	switch {
	case from.Cluster != nil || of.Engine != i.Engine:
		return wire.NewError(rds.ErrInvalidRestore, "%s cannot get these data in its place: they are of a DB cluster. Restore them as a new database.", i.Name)
	case of.Major != i.Major:
		return other("version", i.Version, of.Version)
	case of.MasterUser != i.MasterUser:
		return other("master user", i.MasterUser, of.MasterUser)
	case from.Instance.Storage > i.Storage:
		return wire.NewError(rds.ErrInvalidRestore, "%s cannot get these data in its place: it has %d GiB of storage, and they had %d GiB. Give it as much storage first, or restore them as a new database.",
			i.Name, i.Storage, from.Instance.Storage)
	case of.StorageKey != "" && i.StorageKey == "":
		return wire.NewError(rds.ErrInvalidRestore, "%s cannot get these data in its place: they were encrypted, and its storage is not. Restore them as a new database.", i.Name)
	}
	return nil
}

// nameBeside is a name for an instance that is to take the place of another one. People see it only if
// something goes wrong.
func nameBeside(name string) string {
	const most = 48
	return name[:min(len(name), most)] + "-rewind-" + strings.ToLower(look.NewResourceID("")[:6])
}
