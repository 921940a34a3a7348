package spec

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// SubnetGroup names subnets for databases. A home has one network with a subnet in each zone, so a
// group of these says in which zones databases may be.
type SubnetGroup struct {
	Scope
	Name        string    `json:"name"` // lower case
	Description string    `json:"description"`
	Subnets     []Subnet  `json:"subnets"`
	Tags        []Tag     `json:"tags"`
	Created     time.Time `json:"created"`
	// Generation grows with every change, and when a database begins to use the group.
	Generation int64 `json:"generation"`
}

// Zones returns the zones that the group keeps databases to, sorted. nil means any zone. A group
// that names a subnet other than the home's own keeps databases to no zone, as nobody knows where
// such a subnet is. Scripts that were written for RDS make such groups.
func (g SubnetGroup) Zones() []string {
	var all []string
	for _, s := range g.Subnets {
		if s.ID != SubnetOf(s.Zone) {
			return nil
		}
		all = append(all, s.Zone)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// SubnetOf returns the id of the home's own subnet in a zone.
func SubnetOf(zone string) string { return "subnet-" + zone }

// Subnet is one subnet of a group, in a zone of the home.
type Subnet struct {
	ID   string `json:"id"`
	Zone string `json:"zone"`
}

// OptionGroup belongs to a major version of an engine. PostgreSQL has no options, so a group is
// only kept and shown.
type OptionGroup struct {
	Scope
	Name        string    `json:"name"` // lower case
	Description string    `json:"description"`
	Engine      string    `json:"engine"`
	Major       string    `json:"major"`
	Source      string    `json:"source,omitempty"` // name of the one that it is a copy of
	Tags        []Tag     `json:"tags"`
	Created     time.Time `json:"created"`
	// Generation grows with every change, and when a database begins to use the group.
	Generation int64 `json:"generation"`
}

// Role is an IAM role that a database is associated with for a feature. What a BucketRole has no
// record for is only kept and shown.
type Role struct {
	ARN     string `json:"arn"`
	Feature string `json:"feature,omitempty"`
}

var (
	subnetGroupForm = regexp.MustCompile(`^[a-z0-9._ -]{1,255}$`)
	optionGroupForm = regexp.MustCompile(`^[a-z](-?[a-z0-9])*$`)
	subnetForm      = regexp.MustCompile(`^subnet-[A-Za-z0-9-]{1,64}$`)
	roleForm        = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]{1,512}$`)
)

// DefaultGroup is the name of the subnet group that every account has.
const DefaultGroup = "default"

// CheckSubnetGroup checks the name and the description of a new subnet group. The name must be in
// lower case.
func CheckSubnetGroup(name, description string) error {
	if !subnetGroupForm.MatchString(name) || name != strings.TrimSpace(name) || name == DefaultGroup {
		return invalidValue("The parameter DBSubnetGroupName is not valid: it must be 1 to 255 letters, digits, periods, underscores, spaces or hyphens, " +
			"and not the word default.")
	}
	return checkDescription("DBSubnetGroupDescription", description)
}

// CheckOptionGroup checks the name and the description of a new option group. The name must be in
// lower case. what is the name of the name's parameter, for the message.
func CheckOptionGroup(what, name, description string) error {
	if len(name) > 255 || !optionGroupForm.MatchString(name) {
		return invalidValue("The parameter %s is not a valid identifier. Identifiers must begin with a letter; must contain only "+
			"ASCII letters, digits, and hyphens; and must not end with a hyphen or contain two consecutive hyphens.", what)
	}
	return checkDescription("OptionGroupDescription", description)
}

func checkDescription(what, text string) error {
	if strings.TrimSpace(text) == "" || len(text) > 1024 {
		return invalidValue("The parameter %s must be provided, must not be blank, and has at most 1024 characters.", what)
	}
	return nil
}

// CheckSubnet reports whether id has the form of a subnet's id.
func CheckSubnet(id string) bool { return subnetForm.MatchString(id) }

// CheckRole checks the ARN of a role.
func CheckRole(arn string) error {
	if !roleForm.MatchString(arn) {
		return invalidValue("The parameter RoleArn is not valid: it must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/name, not %s", arn)
	}
	return nil
}
