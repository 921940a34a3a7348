package server

import "testing"

// With only the reserve of etcd left nothing is added to the state; what replaces, shows or
// deletes goes on.
func TestNothingIsCreatedOfTheReserve(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	scarce := false
	w.server.Scarce = func() bool { return scarce }
	u.do(newDB)
	scarce = true
	u.try(with(newDB, "DBInstanceIdentifier=two")).is("ServiceUnavailable", "run `howdah etcd mend`, and try again")
	u.do("DescribeDBInstances")
	u.do(dropDB)
	scarce = false
	u.do(with(newDB, "DBInstanceIdentifier=two"))
}
