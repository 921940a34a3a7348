package database

import (
	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// merge puts newly wanted values over those that wait already.
func merge(waiting *spec.Values, wanted spec.Values) spec.Values {
	v := spec.Values{}
	if waiting != nil {
		v = *waiting
	}
	if wanted.Class != "" {
		v.Class = wanted.Class
	}
	if wanted.Name != "" {
		v.Name = wanted.Name
	}
	if wanted.Disk != nil {
		v.Disk = wanted.Disk
	}
	if wanted.MultiAZ != nil {
		v.MultiAZ = wanted.MultiAZ
	}
	if wanted.BackupRetention != nil {
		v.BackupRetention = wanted.BackupRetention
	}
	if wanted.IAMAuth != nil {
		v.IAMAuth = wanted.IAMAuth
	}
	if wanted.CACertificate != "" {
		v.CACertificate, v.RotationRestart = wanted.CACertificate, wanted.RotationRestart
	}
	return v
}

// differing drops the values that a record has already: asking for them again
// takes a waiting change back.
func differing(v, have spec.Values) spec.Values {
	if v.Class == have.Class {
		v.Class = ""
	}
	if v.Name == have.Name {
		v.Name = ""
	}
	if v.Disk != nil && have.Disk != nil && *v.Disk == *have.Disk {
		v.Disk = nil
	}
	if v.CACertificate == have.CACertificate {
		v.CACertificate, v.RotationRestart = "", false
	}
	v.MultiAZ = unlessSame(v.MultiAZ, have.MultiAZ)
	v.BackupRetention = unlessSame(v.BackupRetention, have.BackupRetention)
	v.IAMAuth = unlessSame(v.IAMAuth, have.IAMAuth)
	return v
}

func unlessSame[T comparable](v, have *T) *T {
	if v != nil && have != nil && *v == *have {
		return nil
	}
	return v
}

// OrNil is nil for no values.
func OrNil(v spec.Values) *spec.Values {
	if v == (spec.Values{}) {
		return nil
	}
	return &v
}

// WantedDisk is the storage that a modification asks for: it can only grow, and by
// a tenth at least.
func WantedDisk(have spec.Storage, size, iops, throughput *int32, kind *string) (*spec.Storage, error) {
	if size == nil && iops == nil && throughput == nil && kind == nil {
		return nil, nil
	}
	disk := have
	if kind != nil && *kind != have.Type {
		disk.Type, disk.IOPS, disk.MiBps = *kind, 0, 0
	}
	wire.Set(&disk.GiB, Ints(size))
	wire.Set(&disk.IOPS, Ints(iops))
	wire.Set(&disk.MiBps, Ints(throughput))
	switch {
	case disk.GiB < have.GiB:
		return nil, wire.NewError(api.ErrInvalidParameterCombination, "Invalid storage size for engine name postgres and storage type %s: %d. AllocatedStorage can only grow.", disk.Type, disk.GiB)
	case have.IOPS > 0 && disk.IOPS > 0 && (size == nil) != (iops == nil) && (disk.GiB != have.GiB || disk.IOPS != have.IOPS):
		return nil, wire.NewError(api.ErrInvalidParameterCombination,
			"You must specify both the storage size and iops when modifying the storage size or iops on a DB instance that has iops.")
	case disk.GiB > have.GiB:
		disk.GiB = max(disk.GiB, (have.GiB*11+9)/10)
	}
	disk, err := spec.CheckStorage(disk)
	return &disk, err
}

// ShowDisk shows what of a new storage differs from the old one.
func ShowDisk(before, after spec.Storage, size, iops, throughput **int32, kind **string) {
	for _, n := range []struct {
		before, after int
		shown         **int32
	}{{before.GiB, after.GiB, size}, {before.IOPS, after.IOPS, iops}, {before.MiBps, after.MiBps, throughput}} {
		if n.after != n.before {
			*n.shown = wire.Number(n.after)
		}
	}
	if after.Type != before.Type {
		*kind = wire.Some(after.Type)
	}
}

// Ints is an optional number as records keep it.
func Ints(p *int32) *int {
	if p == nil {
		return nil
	}
	return wire.Some(int(*p))
}
