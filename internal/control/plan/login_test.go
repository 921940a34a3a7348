package plan

import "testing"

// Every member of a database is told how users of rds_iam log in: any may become the
// primary.
func TestIAMAuthenticationReachesMembers(t *testing.T) {
	i := anInstance("default.postgres15")
	for _, on := range []bool{true, false} {
		i.IAMAuth = on
		if got := told(ForInstance(i, Links{})).IAMAuth; got != on {
			t.Errorf("asked for %t, told %t", on, got)
		}
	}
}
