package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/member"
	"howdah/internal/plan"
	"howdah/internal/scram"
	"howdah/internal/spec"
	"howdah/internal/state"
	"howdah/internal/wire"
)

const (
	defaultPort = 5432
	// caIdentifier names the home's authority in answers, in RDS's form.
	caIdentifier = "howdah-ca"
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

// setMaster checks the master user of a new database.
func setMaster(c *spec.Common, name, password *string) error {
	if or(name, "") == "" {
		return wire.NewError(api.ErrMissingParameter, "The parameter MasterUsername must be provided and must not be blank.")
	}
	if or(password, "") == "" {
		return wire.NewError(api.ErrMissingParameter, "The parameter MasterUserPassword must be provided and must not be blank.")
	}
	c.MasterUser = *name
	return first(spec.CheckMasterUser(*name), setPassword(c, *password))
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

// checkSecurityGroups: groups are only kept and shown in this version; the form
// of their ids is checked all the same.
func checkSecurityGroups(ids []string) error {
	for _, id := range ids {
		if !strings.HasPrefix(id, "sg-") {
			return wire.NewError(api.ErrInvalidParameterValue, "Invalid security group, groupId= %s, groupName=.", id)
		}
	}
	return nil
}

func checkClassicGroups(names []string) error {
	if len(names) > 0 {
		return wire.NewError(rds.ErrDBSecurityGroupNotFound, "DBSecurityGroup not found: %s", names[0])
	}
	return nil
}

// checkLogExports: logs are kept with the database in this version; the types are
// checked all the same.
func checkLogExports(types []string, c spec.Common) error {
	known := []string{"postgresql", "upgrade", "iam-db-auth-error", "instance"}
	for _, t := range types {
		if !slices.Contains(known, t) {
			return wire.NewError(api.ErrInvalidParameterCombination,
				"You cannot use the log types '%s' with engine version %s %s. For supported log types, see the documentation.", t, c.Engine, c.Version)
		}
	}
	return nil
}

func checkMonitoring(interval int, role string) error {
	if !slices.Contains([]int{0, 1, 5, 10, 15, 30, 60}, interval) {
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

func checkCertificate(name string) error {
	if name != caIdentifier {
		return wire.NewError(rds.ErrCertificateNotFound, "Certificate not found: %s. This home has the authority %s.", name, caIdentifier)
	}
	return nil
}

func checkLicense(name string) error {
	if name != license {
		return wire.NewError(api.ErrInvalidParameterCombination, "Invalid license model '%s' for engine 'postgres'. Valid license models are: %s.", name, license)
	}
	return nil
}

const license = "postgresql-license"

// checkOptionGroup: PostgreSQL has no options; the default group is all there is.
func checkOptionGroup(name string, c spec.Common) error {
	if name != defaultOptionGroup(c) {
		return wire.NewError(rds.ErrOptionGroupNotFound, "Specified OptionGroupName: %s not found.", name)
	}
	return nil
}

func defaultOptionGroup(c spec.Common) string {
	return "default:" + c.Engine + "-" + strconv.Itoa(c.Major)
}

// defaultParameterGroup is the one group of an engine's version: others cannot be
// made in this version.
func defaultParameterGroup(c spec.Common) string {
	return "default." + c.Engine + strconv.Itoa(c.Major)
}

func checkSubnetGroup(name string) error {
	if name != defaultSubnetGroup {
		return wire.NewError(rds.ErrDBSubnetGroupNotFound, "DB subnet group '%s' does not exist.", name)
	}
	return nil
}

const defaultSubnetGroup = "default"

// checkMaxStorage checks the limit of growth; 0, or the size itself, is none.
func checkMaxStorage(limit, size int) error {
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
	return wire.NewError(api.ErrInvalidParameterCombination, "Cannot upgrade %s from %s to %s", c.Engine, c.Version, *asked)
}

// resolveVersion finds the installed version that a text such as "15" or "15.18"
// asks for; "" asks for the newest.
func (s *Server) resolveVersion(engine, asked string) (full string, major int, err error) {
	installed := map[int]string{}
	for _, h := range state.LoadAll[member.Host](s.Cache, state.HostRoot) {
		for m, text := range h.Value.Majors {
			if installed[m] == "" || newer(text, installed[m]) {
				installed[m] = text
			}
		}
	}
	for m, text := range installed {
		if (asked == "" && m > major) || asked == text || asked == strconv.Itoa(m) {
			full, major = text, m
		}
	}
	if major == 0 && len(installed) == 0 {
		return "", 0, wire.NewError(api.ErrServiceUnavailable, "No host has joined yet: see `howdah status`, and try again.")
	}
	if major == 0 {
		return "", 0, wire.NewError(api.ErrInvalidParameterCombination, "Cannot find version %s for %s", asked, engine)
	}
	return full, major, nil
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
