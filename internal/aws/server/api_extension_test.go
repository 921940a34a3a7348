package server

import (
	"strings"
	"testing"

	"howdah/internal/model/extension"
	"howdah/internal/model/member"
	"howdah/internal/state"
)

// installs has the agent of a zone's host report extensions and libraries.
func (w *world) installs(zone string, names ...string) {
	w.Helper()
	h, err := state.Load[member.Host](w.server.Cache, state.Host("host-"+zone))
	if err != nil {
		w.Fatal(err)
	}
	h.Value.Extensions = map[int]extension.Installed{15: {}}
	for _, name := range names {
		h.Value.Extensions[15][name] = "1.0"
	}
	w.put(state.Put(h.Key, h.Value))
}

// Parameter groups offer what is installed on hosts now. A library that a host of a database lacks
// is refused, before PostgreSQL fails to start there.
func TestExtensionsFollowFromHosts(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newGroup)
	u.try(values(setGroup, "rds.extensions=citext,hll")).is(badValue, "hll")
	u.try(values(setGroup, "cron.max_running_jobs=3 pending-reboot")).is(badValue, "Invalid parameter name")
	for _, zone := range []string{"a", "b", "c"} {
		w.installs(zone, "citext", "hll", "auto_explain", "pg_cron")
	}
	u.do(values(setGroup, "rds.extensions=citext,hll", "shared_preload_libraries=pg_cron pending-reboot", "cron.max_running_jobs=3 pending-reboot"))
	u.try(values(setGroup, "shared_preload_libraries=pglogical pending-reboot")).is(badValue, "not among")
	u.try(values(setGroup, "session_preload_libraries=pg_cron")).is(badValue, "not among")
	u.try(values(setGroup, "cron.host=elsewhere pending-reboot")).is(badValue, "")

	having(with(newDB, withMine, "MultiAZ=true"))(u)
	hosts := u.layoutOf("db").Members
	if len(hosts) != 2 {
		t.Fatalf("members %+v", hosts)
	}
	w.installs(strings.TrimPrefix(hosts[1].Host, "host-"), "citext", "pg_cron", "auto_explain")
	u.settle()
	if told := u.problems("db"); len(told) == 0 || told[0].Code != "lacks-extensions" || !strings.Contains(told[0].Text, "hll") {
		t.Errorf("problems %+v", told)
	}
	w.installs(strings.TrimPrefix(hosts[1].Host, "host-"), "citext", "pg_cron")
	u.settle()
	u.try(values(setGroup, "shared_preload_libraries=pg_cron,auto_explain pending-reboot")).
		is(badValue, "The library auto_explain is not installed on the host "+hosts[1].Host+" of db")
}

// forgets has the agent of a zone's host be of a release that reports no extensions.
func (w *world) forgets(zone string) {
	w.Helper()
	h, err := state.Load[member.Host](w.server.Cache, state.Host("host-"+zone))
	if err != nil {
		w.Fatal(err)
	}
	h.Value.Extensions = nil
	w.put(state.Put(h.Key, h.Value))
}

// A host whose agent is of an older release is not known to have a library: a database there gets no
// new one, and keeps what it has.
func TestLibrariesOnHostsThatDoNotSay(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	zones := []string{"a", "b", "c"}
	for _, zone := range zones {
		w.installs(zone, "citext", "auto_explain", "pg_cron", "pgaudit")
	}
	u.do(newGroup)
	having(with(newDB, withMine))(u)
	at := strings.TrimPrefix(u.layoutOf("db").Members[0].Host, "host-")
	w.forgets(at)
	u.try(values(setGroup, "shared_preload_libraries=pg_cron pending-reboot")).
		is(badValue, "The agent of the host host-"+at+" of db does not say whether the library pg_cron is installed there")
	u.do(values(setGroup, "shared_preload_libraries=auto_explain pending-reboot"))

	w.installs(at, "citext", "auto_explain", "pg_cron", "pgaudit")
	u.do(values(setGroup, "shared_preload_libraries=pg_cron pending-reboot"))
	u.do("RebootDBInstance?DBInstanceIdentifier=db")
	u.settle()
	w.forgets(at)
	u.do(values(setGroup, "work_mem=8192"))
	u.do(values(setGroup, "shared_preload_libraries=pg_cron,auto_explain pending-reboot"))
	u.try(values(setGroup, "shared_preload_libraries=pg_cron,pgaudit pending-reboot")).is(badValue, "the library pgaudit")
	for _, zone := range zones {
		w.forgets(zone)
	}
	u.settle()
	if n := len(u.layoutOf("db").Members); n != 1 {
		t.Errorf("%d members", n)
	}
	u.try(with(newDB, withMine, "DBInstanceIdentifier=other")).is("InsufficientDBInstanceCapacity", "does not say whether it has the library pg_cron")
}
