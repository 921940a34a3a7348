package spec

import (
	"regexp"
	"time"

	"howdah/internal/model/param"
)

// ParameterGroup is a DB parameter group or a DB cluster parameter group. Default groups have no
// record, as nobody can change them.
type ParameterGroup struct {
	Scope
	Kind        param.Kind   `json:"kind"`
	Name        string       `json:"name"` // lower case
	Family      string       `json:"family"`
	Description string       `json:"description"`
	Values      param.Values `json:"values"`
	// Serial grows with every change of values.
	Serial  int64     `json:"serial"`
	Created time.Time `json:"created"`
	Tags    []Tag     `json:"tags"`
}

// Taken is the state of a parameter group at the last start or reboot that a user asked for. Values
// of dynamic parameters that wait for a reboot are in force up to Serial. No such value of another
// group is in force.
type Taken struct {
	Group  string `json:"group,omitempty"`
	Serial int64  `json:"serial,omitempty"`
}

// GroupKind holds the word of ARNs for each kind of groups.
var GroupKind = map[param.Kind]string{param.Instance: "pg", param.Cluster: "cluster-pg"}

// ARN is the group's resource name.
func (g ParameterGroup) ARN() string { return g.Scope.ARN(GroupKind[g.Kind], g.Name) }

var groupNameForm = regexp.MustCompile(`^[a-z](-?[a-z0-9])*$`)

// CheckGroupName checks the name of a new group. The name must be in lower case. what is the name
// of the parameter, for the message.
func CheckGroupName(what, name string) error {
	if len(name) > 255 || !groupNameForm.MatchString(name) {
		return invalidValue("The parameter %s is not a valid identifier. Identifiers must begin with a letter; must contain only "+
			"ASCII letters, digits, and hyphens; must have 1 to 255 characters; and must not end with a hyphen or contain two consecutive hyphens.", what)
	}
	return nil
}
