package etcdgate

import "testing"

// A value has to speak of the same host, member, case and database as its key, because readers
// believe the value.
func TestValuesAgreeWithTheirKeys(t *testing.T) {
	for _, c := range []struct {
		key, value string
		want       bool
	}{
		{"/howdah/host/h1", `{"name":"h1","address":"10.0.0.1"}`, true},
		{"/howdah/host/h1", `{"name":"h2"}`, false},
		{"/howdah/host/h1", `{"name":"h1","NAME":"h2"}`, false},
		{"/howdah/host/h1", `{}`, false},
		{"/howdah/host/h1", `not JSON`, false},
		{"/howdah/report/h1/db-A.m1", `{"id":"db-A.m1","host":"h1"}`, true},
		{"/howdah/report/h1/db-A.m1", `{"id":"db-A.m2","host":"h1"}`, false},
		{"/howdah/report/h1/db-A.m1", `{"id":"db-A.m1","host":"h2"}`, false},
		{"/howdah/holding/h1", `{"host":"h1","members":["db-A.m1"]}`, true},
		{"/howdah/holding/h1", `{"host":"h2"}`, false},
		{"/howdah/holding/h1/db-A.m1", `{"host":"h1","assignment":{"id":"db-A.m1"}}`, true},
		{"/howdah/holding/h1/db-A.m1", `{"host":"h1","assignment":{"id":"db-C.m1"}}`, false},
		{"/howdah/holding/h1/db-A.m1", `{"host":"h2","assignment":{"id":"db-A.m1"}}`, false},
		{"/howdah/witness/db-A-1/h1", `{"case":"db-A-1","host":"h1","patroni":true}`, true},
		{"/howdah/witness/db-A-1/h1", `{"case":"db-A-1","host":"h2"}`, false},
		{"/howdah/witness/db-A-1/h1", `{"case":"db-B-1","host":"h1"}`, false},
		{"/howdah/cut/db-A-1/m1", `{"case":"db-A-1","host":"h1","member":"m1"}`, true},
		{"/howdah/cut/db-A-1/m1", `{"case":"db-A-1","host":"h1","member":"m2"}`, false},
		{"/howdah/cut/db-A-1/m1", `{"case":"db-A-1","host":"h2","member":"m1"}`, false},
		{"/howdah/death/db-A/m1", `{"database":"db-A","member":"m1","host":"h1"}`, true},
		{"/howdah/death/db-A/m1", `{"database":"db-A","member":"m2","host":"h1"}`, false},
		{"/howdah/plea/db-A", `{"database":"db-A","member":"m1"}`, true},
		{"/howdah/plea/db-A", `{"database":"db-C","member":"m1"}`, false},
		{"/howdah/passed/db-A", `{"database":"db-C"}`, false},
		{"/howdah/incident/db-A/01", `{"database":"db-C"}`, false},
		{"/howdah/result/db-A/restart/1", `{"id":"db-A/restart/1","member":"db-A.m1"}`, true},
		{"/howdah/result/db-A/restart/1", `{"id":"db-A/restart/2"}`, false},
		{"/howdah/job-report/h1/copy-1/fill", `{"name":"copy-1/fill","state":"done","result":{"name":"x"}}`, true},
		{"/howdah/job-report/h1/copy-1/fill", `{"name":"copy-2/fill"}`, false},
		{"/howdah/way/db-A/h1", `{"route":"db-A","edge":"h1"}`, true},
		{"/howdah/way/db-A/h1", `{"route":"db-A","edge":"h2"}`, false},
		{"/howdah/switch/h1/db-A", `{"database":"db-C"}`, false},
		{"/howdah/edge/h1", `{"name":"h2"}`, false},
		{"/howdah/runs/h1", `true`, true},
		{"/service/db-A/leader", "m1", true},
	} {
		n := need{keys: keys{Key: []byte(c.key)}, deed: writes, value: []byte(c.value)}
		if got := agrees(n, "h1"); got != c.want {
			t.Errorf("%s: %s: %t", c.key, c.value, got)
		}
	}
	if !agrees(need{keys: keys{Key: []byte("/howdah/host/h1")}, deed: writes, ignoresValue: true}, "h1") {
		t.Error("a value that stays as it is")
	}
}
