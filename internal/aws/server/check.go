package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/identity/scram"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	defaultPort = 5432
	// maxFollowers is RDS's limit of read replicas of one source, and of readers of
	// one cluster.
	maxFollowers = 15
)

// refuseAsked refuses the parameters that were given of those that would silently
// have no effect.
func refuseAsked(asked map[string]bool) error {
	return refuse(asked, "The parameter %s is not available for this engine.")
}

// refuse refuses the first, by name, of the things that were asked for; format
// names it.
func refuse(asked map[string]bool, format string) error {
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if asked[name] {
			return wire.NewError(api.ErrInvalidParameterCombination, format, name)
		}
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

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

func checkClassicGroups(names []string) error {
	if len(names) > 0 {
		return wire.NewError(rds.ErrDBSecurityGroupNotFound, "DBSecurityGroup not found: %s. Take VpcSecurityGroupIds in place of DBSecurityGroups.", names[0])
	}
	return nil
}

func checkMonitoring(interval int, role string) error {
	if !slices.Contains(monitoringIntervals, interval) {
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

func checkLicense(name string) error {
	if name != license {
		return wire.NewError(api.ErrInvalidParameterCombination, "Invalid license model '%s' for engine 'postgres'. Valid license models are: %s.", name, license)
	}
	return nil
}

const license = "postgresql-license"

func defaultOptionGroup(c spec.Common) string {
	return "default:" + c.Engine + "-" + strconv.Itoa(c.Major)
}

// checkMaxStorage checks the limit of growth; 0, or the size itself, is none.
func checkMaxStorage(limit, size int) error {
	if limit > spec.MostStorage {
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid MaxAllocatedStorage %d: it must be at most %d.", limit, spec.MostStorage)
	}
	if limit != 0 && limit < size {
		return wire.NewError(api.ErrInvalidParameterCombination, "Max storage size must be greater than storage size")
	}
	return nil
}

// sameVersion refuses to go to another version: in this one databases stay at the
// version that they were made with.
func sameVersion(c spec.Common, asked *string) error {
	if asked == nil || *asked == c.Version || *asked == strconv.Itoa(c.Major) {
		return nil
	}
	return wire.NewError(api.ErrInvalidParameterCombination, "Cannot upgrade %s from %s to %s: the EngineVersion stays as it is", c.Engine, c.Version, *asked)
}

// resolveVersion finds the installed version that a text such as "15" or "15.18"
// asks for; "" asks for the newest.
func (s *Server) resolveVersion(engine, asked string) (full string, major int, err error) {
	installed := s.installed()
	for m, text := range installed {
		if (asked == "" && m > major) || asked == text || asked == strconv.Itoa(m) {
			full, major = text, m
		}
	}
	if major == 0 && len(installed) == 0 {
		return "", 0, wire.NewError(api.ErrServiceUnavailable, "No host has joined yet: see `howdah status`, and try again.")
	}
	if major == 0 {
		return "", 0, wire.NewError(api.ErrInvalidParameterCombination, "Cannot find version %s for %s: see EngineVersion of DescribeDBEngineVersions", asked, engine)
	}
	return full, major, nil
}

// installed are the newest versions that the home's hosts have, by major.
func (s *Server) installed() map[int]string {
	installed := map[int]string{}
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		for m, text := range h.Value.Majors {
			if installed[m] == "" || newer(text, installed[m]) {
				installed[m] = text
			}
		}
	}
	return installed
}

// newer compares versions of one major: "15.9" is older than "15.18".
func newer(a, b string) bool { return minorOf(a) > minorOf(b) }

func minorOf(version string) int {
	_, text, _ := strings.Cut(version, ".")
	minor, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return minor
}

// inState answers an error unless a status is one of the allowed.
func inState(status string, err error, allowed ...string) error {
	if slices.Contains(allowed, status) {
		return nil
	}
	return err
}

// usable are the states of a database that may be modified: available, and one
// whose storage is full, since that is how it is mended.
var usable = []string{plan.Available, plan.StorageFull}

// clusterState is the error of a cluster in the wrong state.
func clusterState(c spec.Cluster, status string, expected ...string) error {
	return wire.NewError(rds.ErrInvalidDBClusterState, "DbCluster %s is in %s state but expected it to be one of %s.", c.Name, status, strings.Join(expected, ","))
}

// checkKept checks what has no effect here beyond that it may be given.
func checkKept(insightsRetention *int32, lifecycle *string) error {
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
