package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/state"
)

// startScenarios: values that are valid each, and with which PostgreSQL would not start.
var startScenarios = []scenario{
	{
		name: "memory for other things than buffers", setup: having(newGroup, with(newDB, withMine)), call: values(setGroup, "min_dynamic_shared_memory=1GB pending-reboot"),
		code: badValue, message: "min_dynamic_shared_memory: PostgreSQL of db would ask for",
		after: func(u *user) {
			u.try(values(setGroup, "track_activity_query_size=1MB pending-reboot", "max_connections=2000 pending-reboot")).is(badValue, "of shared memory")
			u.try(values(setGroup, "pg_stat_statements.max=100000000 pending-reboot")).is(badValue, "pg_stat_statements.max")
			u.try(values(setGroup, "max_locks_per_transaction=100000 pending-reboot")).is(badValue, "max_locks_per_transaction")
			u.try(values(setGroup, "max_prepared_transactions=100000 pending-reboot")).is(badValue, "max_prepared_transactions")
			u.do(showMine + "&Source=user").has("Parameters/Parameter#0")
			u.do(values(setGroup, "track_activity_query_size=100kB pending-reboot", "min_dynamic_shared_memory=64 pending-reboot"))
		},
	},
	{
		name: "what was refused is forgotten", setup: having(newGroup, newDB), call: newGroup, code: "DBParameterGroupAlreadyExists",
		after: func(u *user) {
			u.do(values(setGroup, "shared_buffers=512MB pending-reboot"))
			u.try(values(setGroup, "log_statement_stats=1", "log_parser_stats=1", "shared_buffers=64GB pending-reboot")).is(badValue, "cannot both be on")
			u.do(with(newDB, withMine, "DBInstanceIdentifier=second"))
		},
	},
	{
		name: "a replica gets what its source has", setup: having(newGroup, with(newDB, withMine, "DBInstanceClass=db.m5.large", "BackupRetentionPeriod=1"), with(newReplica, "DBInstanceClass=db.t3.micro", "DBParameterGroupName=default.postgres15")),
		call: values(setGroup, "max_connections=60000 pending-reboot"), code: badValue, message: "PostgreSQL of copy would ask for",
		after: func(u *user) { u.do(values(setGroup, "max_connections=5000 pending-reboot")) },
	},
	{
		name: "more processes than there can be", setup: having(newGroup), call: values(setGroup, "max_connections=200000 pending-reboot", "autovacuum_max_workers=62143 pending-reboot"),
		after: func(u *user) {
			u.try(with(newDB, withMine)).is(badValue, "max_connections, autovacuum_max_workers")
			having(newDB)(u)
			u.try(modifyDB+"&DBParameterGroupName=mine").is(badValue, "autovacuum_max_workers")
		},
	},
	{
		name: "two that exclude each other", setup: having(newGroup), call: values(setGroup, "log_statement_stats=1", "log_parser_stats=1"), code: badValue, message: "log_statement_stats and log_parser_stats cannot both be on",
		after: func(u *user) {
			u.do(values(setGroup, "log_statement_stats=1"))
			u.try(values(setGroup, "log_executor_stats=1 pending-reboot")).is(badValue, "log_executor_stats")
			u.do(values(setGroup, "log_executor_stats=1", "log_statement_stats=0"))
		},
	},
	{
		name: "two that exclude each other, after a reboot", setup: having(newGroup, with(newDB, withMine), values(setGroup, "log_statement_stats=1"), values(setGroup, "log_statement_stats=0 pending-reboot")),
		call: values(setGroup, "log_parser_stats=1"), code: badValue, message: "for db",
		after: func(u *user) { u.do(values(setGroup, "log_parser_stats=1 pending-reboot")) },
	},
	{
		name: "two that exclude each other, in two groups", setup: having(newShared, with(newGroup, "DBParameterGroupFamily=aurora-postgresql15"), values(setShared, "log_statement_stats=1"), newCluster+"&DBClusterParameterGroupName=ours", with(newMember, withMine)),
		call: values(setGroup, "log_planner_stats=1"), code: badValue, message: "for aura-1",
		after: func(u *user) {
			u.do(values(setShared, "log_statement_stats=0"))
			u.do(values(setGroup, "log_planner_stats=1"))
			u.try(values(setShared, "log_statement_stats=1")).is(badValue, "for aura-1")
		},
	},
}

// elsewhere are hosts whose agents judge values: that of zone b takes any but "bad".
type elsewhere struct{ asked *[]string }

func (e elsewhere) Check(_ context.Context, host, address string, in hostapi.SettingRequest) (string, error) {
	*e.asked = append(*e.asked, host)
	if host != "host-b" || address != agentOf(host) || in.Major != 17 {
		return "", hostapi.ErrNoHost
	}
	if strings.Contains(in.Value, "bad") {
		return "PostgreSQL refuses it: no such thing", nil
	}
	return "", nil
}

// TestValuesAreJudgedElsewhere: where the server has no PostgreSQL of a family's version
// beside it, that of a host judges texts; while no host answers they are refused.
func TestValuesAreJudgedElsewhere(t *testing.T) {
	t.Setenv(postgres.OfferVariable, "15")
	w := newWorld(t)
	u := w.user(t)
	var asked []string
	w.server.rds.Groups.Settings = elsewhere{&asked}
	for _, zone := range []string{"a", "b"} {
		h, err := state.Load[member.Host](w.server.Cache, state.Host("host-"+zone))
		if err != nil {
			t.Fatal(err)
		}
		h.Value.Majors = map[int]string{15: "15.18", 17: "17.6"}
		w.put(state.Put(h.Key, h.Value))
	}
	c, err := state.Load[param.Catalogue](w.server.Cache, state.Catalogue("15.18"))
	if err != nil {
		t.Fatal(err)
	}
	c.Value.Version = "17.6"
	w.put(state.Put(state.Catalogue("17.6"), c.Value))
	u.do(with(newGroup, "DBParameterGroupFamily=postgres17"))

	u.do(values(setGroup, "work_mem=64MB", "jit=0", "log_statement=ddl", "lc_time=C"))
	if len(asked) != 0 {
		t.Errorf("asked of what is known: %v", asked)
	}
	u.do(values(setGroup, "search_path=a"))
	u.try(values(setGroup, "search_path=bad")).is(badValue, "search_path: PostgreSQL refuses it: no such thing")
	if strings.Join(asked, " ") != "host-a host-b host-a host-b" {
		t.Errorf("asked %v", asked)
	}
	w.put(state.Put(state.Live("host-b"), member.Liveness{Since: w.now()}))
	u.try(values(setGroup, "search_path=b", "work_mem=1MB")).is("ServiceUnavailable", "search_path cannot be checked now: no host with PostgreSQL 17 answers")
	u.do(showMine + "&Source=user").has("Parameters/Parameter#5")
	w.server.rds.Groups.Settings = nil
	u.try(values(setGroup, "search_path=b")).is("ServiceUnavailable", "search_path")
	u.do(values(setGroup, "work_mem=1MB"))
}

// TestCallsShareLooks: calls of one account at the same time, which look at it together,
// do not get into each other's way.
func TestCallsShareLooks(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	having(newSecurity, newGroup, with(newDB, withMine))(u)
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			u.try(with(newDB, fmt.Sprintf("DBInstanceIdentifier=db-%d", n))).is("", "")
			u.try(values(setGroup, "shared_buffers=64GB pending-reboot")).is(badValue, "shared_buffers")
			u.try(with(newDB, fmt.Sprintf("DBInstanceIdentifier=mine-%d", n), withMine)).is("", "")
		})
	}
	all.Wait()
}
