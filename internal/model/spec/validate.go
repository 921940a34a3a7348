package spec

import (
	"regexp"
	"slices"
	"strings"
)

var (
	nameForm   = regexp.MustCompile(`^[a-z](-?[a-z0-9])*$`)
	userForm   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,62}$`)
	dbNameForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
)

// CheckName checks an identifier. It must be in lower case. what is the name of the parameter, for
// the message.
func CheckName(what, name string) error { return CheckLongName(what, name, 63) }

// CheckLongName is CheckName of a name that may have that many characters.
func CheckLongName(what, name string, most int) error {
	if len(name) > most || !nameForm.MatchString(name) {
		return invalidValue("The parameter %s is not a valid identifier. Identifiers must begin with a letter; must contain only "+
			"ASCII letters, digits, and hyphens; and must not end with a hyphen or contain two consecutive hyphens.", what)
	}
	return nil
}

// reservedUsers are PostgreSQL's and the platform's own roles.
var reservedUsers = []string{"rdsadmin", "rdsrepladmin", "rdsmon", "ccm_reader", "public", "none", "current_user", "session_user", "current_role"}

// CheckMasterUser checks the name of a master user.
func CheckMasterUser(name string) error {
	if !userForm.MatchString(name) {
		return invalidValue("The parameter MasterUsername is not valid. It must be 1 to 63 letters, digits or underscores and begin with a letter.")
	}
	lower := strings.ToLower(name)
	if slices.Contains(reservedUsers, lower) || strings.HasPrefix(lower, "pg_") || strings.HasPrefix(lower, "rds_") {
		return invalidValue("MasterUsername %s cannot be used as it is a reserved word used by the engine", name)
	}
	return nil
}

// CheckPassword checks a master user's password.
func CheckPassword(password string) error {
	if len(password) < 8 {
		return invalidValue("The parameter MasterUserPassword is not a valid password because it is shorter than 8 characters.")
	}
	if len(password) > 128 {
		return invalidValue("The parameter MasterUserPassword is not a valid password because it is longer than 128 characters.")
	}
	for _, r := range password {
		if r <= ' ' || r > '~' || r == '/' || r == '"' || r == '@' {
			return invalidValue("The parameter MasterUserPassword is not a valid password. Only printable ASCII characters besides '/', '@', '\"', ' ' may be used.")
		}
	}
	return nil
}

// CheckDBName checks the name of the first database; "" is allowed.
func CheckDBName(name string) error {
	if name == "" {
		return nil
	}
	lower := strings.ToLower(name)
	if !dbNameForm.MatchString(name) || slices.Contains([]string{"rdsadmin", "template0", "template1", "db"}, lower) {
		return invalidValue("Database name %s cannot be used: DBName, or DatabaseName of a cluster, must begin with a letter or an underscore, contain only letters, digits and underscores, and not be reserved.", name)
	}
	return nil
}

// CheckPort checks the port of a PostgreSQL endpoint.
func CheckPort(port int) error {
	if port < 1150 || port > 65535 {
		return invalidValue("Invalid database port %d: Port, or DBPortNumber, must be between 1150 and 65535.", port)
	}
	return nil
}

// MostStorage is the largest storage of any type, in GiB.
const MostStorage = 65536

// tagForm is the form that RDS allows for keys and values of tags.
var tagForm = regexp.MustCompile(`^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$`)

// CheckTags checks the tags of one resource.
func CheckTags(tags []Tag) error {
	if len(tags) > 50 {
		return invalidValue("A resource can have at most 50 tags, not %d.", len(tags))
	}
	seen := map[string]bool{}
	for _, t := range tags {
		switch {
		case t.Key == "" || len(t.Key) > 128 || len(t.Value) > 256:
			return invalidValue("The Key of a tag has 1 to 128 characters, the Value 0 to 256.")
		case strings.HasPrefix(strings.ToLower(t.Key), "aws:") || strings.HasPrefix(t.Key, "rds:"):
			return invalidValue("Tag keys cannot begin with aws: or rds:, as %s does.", t.Key)
		case !tagForm.MatchString(t.Key) || !tagForm.MatchString(t.Value):
			return invalidValue("The Key and the Value of a tag can have letters, digits, spaces and _.:/=+-@ only, unlike %q=%q.", t.Key, t.Value)
		case seen[t.Key]:
			return invalidValue("Duplicate tag key %s.", t.Key)
		}
		seen[t.Key] = true
		if err := checkSetting(t); err != nil {
			return err
		}
	}
	return nil
}

// CheckClass finds an instance class, or returns an Invalid.
func CheckClass(name string) (Class, error) {
	c, ok := LookupClass(name)
	if !ok {
		return c, invalidValue("Invalid DB Instance class: %s", name)
	}
	return c, nil
}

// Storage is the storage of an instance. In a request, a zero field was not given.
type Storage struct {
	Type  string `json:"type"`
	GiB   int    `json:"gib"`
	IOPS  int    `json:"iops,omitempty"`
	MiBps int    `json:"mibps,omitempty"`
}

// storageSizes holds the smallest and the largest size of each storage type for PostgreSQL, in GiB
// (RDS API reference, CreateDBInstance).
var storageSizes = map[string][2]int{
	"standard": {5, 3072}, "gp2": {20, 65536}, "gp3": {20, 65536}, "io1": {100, 65536}, "io2": {100, 65536},
}

// StorageSizes returns the smallest and the largest size of a storage type, in GiB.
func StorageSizes(kind string) (low, high int) { return storageSizes[kind][0], storageSizes[kind][1] }

// CheckStorage fills in what a request leaves open, and checks the result.
func CheckStorage(s Storage) (Storage, error) {
	if s.Type == "" {
		s.Type = "gp2"
		if s.IOPS > 0 {
			s.Type = "io1"
		}
	}
	if s.IOPS < 0 || s.MiBps < 0 {
		return s, invalidValue("Iops and StorageThroughput cannot be negative.")
	}
	sizes, known := storageSizes[s.Type]
	if !known {
		return s, invalidValue("Invalid storage type: %s", s.Type)
	}
	provisioned := s.Type == "io1" || s.Type == "io2"
	if s.GiB < sizes[0] || s.GiB > sizes[1] {
		return s, invalidValue("Invalid storage size for engine name postgres and storage type %s: %d. AllocatedStorage must be between %d and %d GiB.", s.Type, s.GiB, sizes[0], sizes[1])
	}
	switch {
	case provisioned && s.IOPS == 0:
		return s, invalidCombination("You must specify the Iops parameter with the storage type %s.", s.Type)
	case !provisioned && s.Type != "gp3" && s.IOPS > 0:
		return s, invalidCombination("The Iops parameter is not supported with the storage type %s.", s.Type)
	case provisioned && (s.IOPS < 100 || s.IOPS > 256000):
		return s, invalidValue("Invalid Iops value %d: it must be between 100 and 256000.", s.IOPS)
	case s.MiBps > 0 && s.Type != "gp3":
		return s, invalidCombination("The StorageThroughput parameter is only supported with the storage type gp3.")
	}
	return s, nil
}

// CheckRetention checks a number of days for which backups are kept.
func CheckRetention(days, low int) error {
	if days < low || days > 35 {
		return invalidValue("Invalid backup retention period %d: it must be between %d and 35.", days, low)
	}
	return nil
}

// CheckTier checks a promotion tier.
func CheckTier(tier int) error {
	if tier < 0 || tier > 15 {
		return invalidValue("Invalid promotion tier %d: it must be between 0 and 15.", tier)
	}
	return nil
}
