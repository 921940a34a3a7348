package spec

import (
	"testing"

	"howdah/internal/model/member"
)

func TestWhichRoleADatabaseHas(t *testing.T) {
	t.Parallel()
	role := func(arn, feature string) []Role { return []Role{{ARN: arn, Feature: feature}} }
	own := BucketRole{Account: "123456789012", Name: "exports"}.ARN()
	for name, tt := range map[string]struct {
		roles   []Role
		feature string
		want    string
	}{
		"its own":                 {role(own, member.Export), member.Export, "exports"},
		"for the other feature":   {role(own, member.Export), member.Import, ""},
		"without a feature":       {role(own, ""), member.Export, ""},
		"none":                    {nil, member.Export, ""},
		"of another account":      {role("arn:aws:iam::210987654321:role/exports", member.Export), member.Export, ""},
		"of a path":               {role("arn:aws:iam::123456789012:role/a/exports", member.Export), member.Export, ""},
		"of another partition":    {role("arn:aws-cn:iam::123456789012:role/exports", member.Export), member.Export, ""},
		"the right one of two":    {append(role(own+"2", member.Import), role(own, member.Export)...), member.Export, "exports"},
		"a name that leads out":   {role("arn:aws:iam::123456789012:role/../x", member.Export), member.Export, ""},
		"an account in the name":  {role("arn:aws:iam::123456789012:role/210987654321/x", member.Export), member.Export, ""},
		"nothing after the slash": {role("arn:aws:iam::123456789012:role/", member.Export), member.Export, ""},
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
