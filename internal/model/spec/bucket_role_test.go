package spec

import "testing"

func TestWhichRoleADatabaseHas(t *testing.T) {
	t.Parallel()
	role := func(arn, feature string) []Role { return []Role{{ARN: arn, Feature: feature}} }
	own := BucketRole{Account: "123456789012", Name: "exports"}.ARN()
	for name, tt := range map[string]struct {
		roles   []Role
		feature string
		want    string
	}{
		"its own":                 {role(own, Export), Export, "exports"},
		"for the other feature":   {role(own, Export), Import, ""},
		"without a feature":       {role(own, ""), Export, ""},
		"none":                    {nil, Export, ""},
		"of another account":      {role("arn:aws:iam::210987654321:role/exports", Export), Export, ""},
		"of a path":               {role("arn:aws:iam::123456789012:role/a/exports", Export), Export, ""},
		"of another partition":    {role("arn:aws-cn:iam::123456789012:role/exports", Export), Export, ""},
		"the right one of two":    {append(role(own+"2", Import), role(own, Export)...), Export, "exports"},
		"a name that leads out":   {role("arn:aws:iam::123456789012:role/../x", Export), Export, ""},
		"an account in the name":  {role("arn:aws:iam::123456789012:role/210987654321/x", Export), Export, ""},
		"nothing after the slash": {role("arn:aws:iam::123456789012:role/", Export), Export, ""},
	} {
		c := Common{Scope: Scope{Account: "123456789012"}, Roles: tt.roles}
		if got := c.RoleFor(tt.feature); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	for name, good := range map[string]bool{"exports": true, "A_b+c=d,e.f@g-h": true, "": false, "a/b": false, "a b": false, "ä": false} {
		if CheckBucketRoleName(name) != good {
			t.Errorf("the name %q", name)
		}
	}
}
