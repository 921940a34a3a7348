package database

import (
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/scram"
	"howdah/internal/model/spec"
)

// setPassword keeps the verifier of a password, never the password.
func setPassword(c *spec.Common, password string) error {
	if err := spec.CheckPassword(password); err != nil {
		return err
	}
	verifier, err := scram.Verifier(password)
	if err != nil {
		return err
	}
	c.Verifier = verifier
	c.PasswordSerial++
	return nil
}

func CheckClassicGroups(names []string) error {
	if len(names) > 0 {
		return wire.NewError(rds.ErrDBSecurityGroupNotFound, "DBSecurityGroup not found: %s. Take VpcSecurityGroupIds in place of DBSecurityGroups.", names[0])
	}
	return nil
}

func checkMonitoring(interval int, role string) error {
	if !slices.Contains(look.MonitoringIntervals, interval) {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid MonitoringInterval %d: use 0, 1, 5, 10, 15, 30 or 60.", interval)
	}
	switch {
	case interval > 0 && role == "":
		return wire.NewError(api.ErrInvalidParameterCombination, "A MonitoringRoleARN value is required if you specify a MonitoringInterval value other than 0.")
	case interval == 0 && role != "":
		return wire.NewError(api.ErrInvalidParameterCombination, "You must specify a MonitoringInterval value other than 0 when you specify a MonitoringRoleARN value.")
	}
	return nil
}

func checkNetwork(name string) error {
	switch name {
	case "IPV4":
		return nil
	case "DUAL":
		return wire.NewError(rds.ErrNetworkTypeNotSupported, "The network type DUAL is not available: endpoints have IPv4 addresses.")
	}
	return wire.NewError(api.ErrInvalidParameterValue, "Invalid network type: %s", name)
}

func CheckLicense(name string) error {
	if name != look.License {
		return wire.NewError(api.ErrInvalidParameterCombination, "Invalid license model '%s' for engine 'postgres'. Valid license models are: %s.", name, look.License)
	}
	return nil
}

// CheckMaxStorage checks the limit of growth; 0, or the size itself, is none.
func CheckMaxStorage(limit, size int) error {
	if limit > spec.MostStorage {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid MaxAllocatedStorage %d: it must be at most %d.", limit, spec.MostStorage)
	}
	if limit != 0 && limit < size {
		return wire.NewError(api.ErrInvalidParameterCombination, "Max storage size must be greater than storage size")
	}
	return nil
}

// CheckAskedMaxStorage checks a limit that a user asks for: it is to be a tenth above the size at
// least. Storage that grew may come nearer to it.
func CheckAskedMaxStorage(limit *int32, storage spec.Storage) error {
	most := int(wire.Or(limit, 0))
	if most <= storage.GiB || most*10 >= storage.GiB*11 {
		return nil
	}
	return wire.NewError(api.ErrInvalidParameterCombination,
		"Invalid max storage size for engine name postgres and storage type %s: %d. It must be at least 10%% more than the allocated storage of %d GiB.", storage.Type, most, storage.GiB)
}

// SameVersion refuses to go to another version: in this one databases stay at the
// version that they were made with.
func SameVersion(c spec.Common, asked *string) error {
	if asked == nil || *asked == c.Version || *asked == strconv.Itoa(c.Major) {
		return nil
	}
	return wire.NewError(api.ErrInvalidParameterCombination, "Cannot upgrade %s from %s to %s: the EngineVersion stays as it is", c.Engine, c.Version, *asked)
}

// CheckKept checks what has no effect here beyond that it may be given.
func CheckKept(insightsRetention *int32, lifecycle *string) error {
	days := int(wire.Or(insightsRetention, 7))
	if days != 7 && days != 731 && (days < 31 || days > 23*31 || days%31 != 0) {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid PerformanceInsightsRetentionPeriod %d: use 7, 731, or a multiple of 31 up to 713.", days)
	}
	known := []string{"open-source-rds-extended-support", "open-source-rds-extended-support-disabled"}
	if kind := wire.Or(lifecycle, known[0]); !slices.Contains(known, kind) {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid EngineLifecycleSupport %s: use %s.", kind, strings.Join(known, " or "))
	}
	return nil
}

// FinalSnapshot asks for the explicit word that the data may go, or for the name of the snapshot that
// keeps them.
func FinalSnapshot(skip bool, name *string, parameter string) error {
	switch {
	case skip && name != nil:
		return wire.NewError(api.ErrInvalidParameterCombination, "%s can not be specified when SkipFinalSnapshot is specified.", parameter)
	case !skip && name == nil:
		return wire.NewError(api.ErrInvalidParameterCombination, "%s is required unless SkipFinalSnapshot is specified.", parameter)
	}
	return nil
}
