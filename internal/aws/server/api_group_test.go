package server

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"howdah/internal/aws/rds/group"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/param"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// Calls on parameter groups.
const (
	newGroup    = "CreateDBParameterGroup?DBParameterGroupName=mine&DBParameterGroupFamily=postgres15&Description=d"
	newShared   = "CreateDBClusterParameterGroup?DBClusterParameterGroupName=ours&DBParameterGroupFamily=aurora-postgresql15&Description=d"
	setGroup    = "ModifyDBParameterGroup?DBParameterGroupName=mine"
	setShared   = "ModifyDBClusterParameterGroup?DBClusterParameterGroupName=ours"
	resetGroup  = "ResetDBParameterGroup?DBParameterGroupName=mine"
	dropGroup   = "DeleteDBParameterGroup?DBParameterGroupName=mine"
	showGroups  = "DescribeDBParameterGroups?"
	showMine    = "DescribeDBParameters?DBParameterGroupName=mine"
	copyGroup   = "CopyDBParameterGroup?SourceDBParameterGroupIdentifier=mine&TargetDBParameterGroupIdentifier=copy&TargetDBParameterGroupDescription=d"
	badGroup    = "InvalidDBParameterGroupState"
	noGroup     = "DBParameterGroupNotFound"
	withMine    = "DBParameterGroupName=mine"
	applyStatus = "DBInstances/DBInstance/DBParameterGroups/DBParameterGroup/ParameterApplyStatus="
)

// catalogue puts what an agent read from a real PostgreSQL 15 where an agent puts it.
func (w *world) catalogue() {
	w.Helper()
	text, err := os.ReadFile("../../model/param/testdata/15.json")
	if err != nil {
		w.Fatal(err)
	}
	var c param.Catalogue
	if err := json.Unmarshal(text, &c); err != nil {
		w.Fatal(err)
	}
	c.Version = "15.18"
	w.put(state.Put(state.Catalogue(c.Version), c))
}

// values are the parameters of a request: "name=value method", or "name method".
func values(call string, all ...string) string {
	for n, each := range all {
		setting, method, _ := strings.Cut(each, " ")
		name, value, given := strings.Cut(setting, "=")
		if method == "" {
			method = "immediate"
		}
		prefix := fmt.Sprintf("&Parameters.Parameter.%d.", n+1)
		call += prefix + "ParameterName=" + name + prefix + "ApplyMethod=" + method
		if given {
			call += prefix + "ParameterValue=" + value
		}
	}
	return call
}

// parameter is one of a list, by name.
func (a *answer) parameter(name string) map[string]string {
	a.Helper()
	for _, path := range []string{"Parameters/Parameter", "EngineDefaults/Parameters/Parameter"} {
		for _, p := range a.result().find(path) {
			if p.text("ParameterName") == name {
				found := map[string]string{}
				for _, child := range p.children {
					found[child.name] = strings.TrimSpace(child.content)
				}
				return found
			}
		}
	}
	a.Errorf("%s: there is no %s", a.call, name)
	return nil
}

// only asks for one parameter.
func only(call, name string) string {
	return call + "&Filters.Filter.1.Name=parameter-name&Filters.Filter.1.Values.Value.1=" + name
}

func (u *user) shows(call, name, value, source, method string) {
	u.Helper()
	p := u.do(only(call, name)).parameter(name)
	if p["ParameterValue"] != value || p["Source"] != source || p["ApplyMethod"] != method {
		u.Errorf("%s: %v", name, p)
	}
}

var groupScenarios = slices.Concat([]scenario{
	{
		name: "a group", call: with(newGroup, "DBParameterGroupName=Mine"), want: []string{
			"DBParameterGroup/DBParameterGroupName=mine", "DBParameterGroup/DBParameterGroupFamily=postgres15", "DBParameterGroup/Description=d",
		},
		after: func(u *user) {
			u.try(newGroup).is("DBParameterGroupAlreadyExists", "mine")
			u.do(newShared).has("DBClusterParameterGroup/DBClusterParameterGroupArn=arn:aws:rds:us-east-1:" + u.account + ":cluster-pg:ours")
			u.do(showGroups).has("DBParameterGroups/DBParameterGroup#3", "DBParameterGroups/DBParameterGroup[1]/DBParameterGroupName=default.aurora-postgresql15")
			u.do(showGroups + "DBParameterGroupName=MINE").has("DBParameterGroups/DBParameterGroup/DBParameterGroupArn=arn:aws:rds:us-east-1:" + u.account + ":pg:mine")
			u.do("DescribeDBClusterParameterGroups").has("DBClusterParameterGroups/DBClusterParameterGroup#3")
			u.try("DescribeDBClusterParameterGroups?DBClusterParameterGroupName=mine").is(noGroup, "mine")
			u.do(dropGroup)
			u.try(dropGroup).is(noGroup, "mine")
			u.do("DeleteDBClusterParameterGroup?DBClusterParameterGroupName=ours")
			u.region = "eu-west-1"
			u.do(showGroups).has("DBParameterGroups/DBParameterGroup#2")
		},
	},
	{
		name: "tags", setup: having(newGroup+"&Tags.Tag.1.Key=a&Tags.Tag.1.Value=b", newShared), call: showGroups,
		after: func(u *user) {
			arn := "arn:aws:rds:us-east-1:" + u.account + ":"
			u.do("ListTagsForResource?ResourceName="+arn+"pg:mine").has("TagList/Tag#1", "TagList/Tag/Key=a")
			u.do("AddTagsToResource?Tags.Tag.1.Key=c&Tags.Tag.1.Value=d&ResourceName=" + arn + "cluster-pg:ours")
			u.do("ListTagsForResource?ResourceName=" + arn + "cluster-pg:ours").has("TagList/Tag/Value=d")
			u.do("RemoveTagsFromResource?TagKeys.member.1=a&ResourceName=" + arn + "pg:mine")
			u.do("ListTagsForResource?ResourceName=" + arn + "pg:mine").has("TagList/Tag#0")
			u.try("ListTagsForResource?ResourceName="+arn+"pg:none").is(noGroup, "none")
			u.try("AddTagsToResource?Tags.Tag.1.Key=c&ResourceName="+arn+"pg:default.postgres15").is(badGroup, "Default")
		},
	},
	{
		name: "every parameter of PostgreSQL", call: "DescribeEngineDefaultParameters?DBParameterGroupFamily=postgres15&MaxRecords=20",
		want: []string{"EngineDefaults/DBParameterGroupFamily=postgres15", "EngineDefaults/Parameters/Parameter#20"},
		after: func(u *user) {
			seen, marker := 0, ""
			for more := true; more; more = marker != "" {
				a := u.do("DescribeDBParameters?DBParameterGroupName=default.postgres15&Marker=" + marker)
				seen += len(a.result().find("Parameters/Parameter"))
				marker = a.text("Marker")
			}
			if seen < 370 {
				u.Errorf("only %d parameters", seen)
			}
			u.do("DescribeEngineDefaultClusterParameters?DBParameterGroupFamily=aurora-postgresql15&MaxRecords=20").has("EngineDefaults/Parameters/Parameter#20")
			u.do(only("DescribeDBClusterParameters?DBClusterParameterGroupName=default.aurora-postgresql15", "apg_ccm_enabled")).has("Parameters/Parameter/IsModifiable=true")
		},
	},
	{
		name: "what is shown of a parameter", setup: having(newGroup), call: only(showMine, "work_mem"), want: []string{
			"Parameters/Parameter#1", "Parameters/Parameter/DataType=integer", "Parameters/Parameter/ApplyType=dynamic", "Parameters/Parameter/AllowedValues=64-2147483647",
			"Parameters/Parameter/IsModifiable=true", "Parameters/Parameter/Source=engine-default", "Parameters/Parameter/ParameterValue=4096",
		},
		after: func(u *user) {
			u.shows(showMine, "shared_buffers", "{DBInstanceClassMemory/32768}", "system", "pending-reboot")
			u.shows(showMine, "max_wal_size", "2048", "system", "pending-reboot")
			if p := u.do(only(showMine, "ssl_key_file")).parameter("ssl_key_file"); p["IsModifiable"] != "false" || !strings.Contains(p["Description"], "Not modifiable: the certificates") {
				u.Errorf("%v", p)
			}
		},
	},
	{
		name: "values", setup: having(newGroup), call: values(setGroup, "work_mem=64MB", "max_connections=200 pending-reboot", "jit=0 pending-reboot", "shared_buffers={DBInstanceClassMemory/65536} pending-reboot"),
		want: []string{"DBParameterGroupName=mine"},
		after: func(u *user) {
			u.shows(showMine, "work_mem", "64MB", "user", "immediate")
			u.shows(showMine, "max_connections", "200", "user", "pending-reboot")
			u.do(showMine + "&Source=user").has("Parameters/Parameter#4")
			u.told("Updated parameter work_mem to 64MB with apply method immediate.")
			u.do(copyGroup).has("DBParameterGroup/DBParameterGroupName=copy", "DBParameterGroup/DBParameterGroupFamily=postgres15")
			u.do("CopyDBClusterParameterGroup?SourceDBClusterParameterGroupIdentifier=default.aurora-postgresql15&TargetDBClusterParameterGroupIdentifier=copy&TargetDBClusterParameterGroupDescription=d")
			u.do(values(resetGroup, "work_mem", "jit", "statement_timeout"))
			u.do(showMine + "&Source=user").has("Parameters/Parameter#2")
			u.do(resetGroup + "&ResetAllParameters=true")
			u.do(showMine + "&Source=user").has("Parameters/Parameter#0")
			u.do(with(showMine, "DBParameterGroupName=copy") + "&Source=user").has("Parameters/Parameter#4")
		},
	},
	{
		name: "values of a cluster's group", setup: having(newShared), call: values(setShared, "max_connections=300 pending-reboot", "apg_ccm_enabled=1 pending-reboot", "rds.force_ssl=0"),
		want: []string{"DBClusterParameterGroupName=ours"},
		after: func(u *user) {
			u.do("DescribeDBClusterParameters?DBClusterParameterGroupName=ours&Source=user").has("Parameters/Parameter#3", "Parameters/Parameter[1]/SupportedEngineModes/member=provisioned")
			u.do("ResetDBClusterParameterGroup?DBClusterParameterGroupName=ours&ResetAllParameters=true")
			u.do("CreateDBParameterGroup?DBParameterGroupName=aurora&DBParameterGroupFamily=aurora-postgresql15&Description=d")
			u.try(values(with(setGroup, "DBParameterGroupName=aurora"), "max_connections=300 pending-reboot")).is(badValue, "set it in the DB cluster parameter group")
		},
	},
	{
		name: "an instance with a group", setup: having(newGroup, values(setGroup, "work_mem=64MB")), call: with(newDB, withMine),
		want: []string{"DBInstance/DBParameterGroups/DBParameterGroup/DBParameterGroupName=mine", "DBInstance/DBParameterGroups/DBParameterGroup/ParameterApplyStatus=in-sync"},
		after: func(u *user) {
			u.try(dropGroup).is(badGroup, "db")
			u.settle()
			u.do(values(setGroup, "jit=0 pending-reboot"))
			u.do(showDB).has(applyStatus + "pending-reboot")
			u.do(rebootDB)
			u.settle()
			u.do(showDB).has(applyStatus + "in-sync")
			u.do(dropDB)
			u.settle()
			u.do(dropGroup)
		},
	},
	{
		name: "another group takes a reboot", setup: having(newGroup, newDB), call: with(modifyDB, withMine),
		want: []string{"DBInstance/DBParameterGroups/DBParameterGroup/DBParameterGroupName=mine", "DBInstance/DBParameterGroups/DBParameterGroup/ParameterApplyStatus=pending-reboot"},
		after: func(u *user) {
			u.told("Updated to use DBParameterGroup mine", "Finished updating DB parameter group")
			u.do(rebootDB)
			u.settle()
			u.do(showDB).has(applyStatus + "in-sync")
			u.do(with(modifyDB, "DBParameterGroupName=default.postgres15"))
			u.try(dropGroup).is(badGroup, "until they are rebooted")
			u.do(rebootDB)
			u.settle()
			u.do(dropGroup)
		},
	},
	{
		name: "what PostgreSQL says", setup: func(u *user) { having(newGroup, with(newDB, withMine))(u); u.obeys("db", 1, false) }, call: showDB, want: []string{applyStatus + "in-sync"},
		after: func(u *user) {
			u.do(values(setGroup, "work_mem=64MB"))
			u.do(showDB).has(applyStatus + "applying")
			u.obeys("db", 2, false)
			u.do(showDB).has(applyStatus + "in-sync")
			u.do(values(setGroup, "max_connections=200 pending-reboot"))
			u.obeys("db", 3, true)
			u.do(showDB).has(applyStatus + "pending-reboot")
			u.obeys("db", 4, false)
			u.do(showDB).has(applyStatus + "in-sync")
		},
	},
	{
		name: "a cluster with a group", setup: having(newShared, newCluster, newMember), call: modifyAura + "&DBClusterParameterGroupName=ours",
		want: []string{"DBCluster/DBClusterParameterGroup=ours", "DBCluster/DBClusterMembers/DBClusterMember/DBClusterParameterGroupStatus=pending-reboot"},
		after: func(u *user) {
			u.try("DeleteDBClusterParameterGroup?DBClusterParameterGroupName=ours").is(badGroup, "aura")
			u.do("RebootDBInstance?DBInstanceIdentifier=aura-1")
			u.settle()
			u.do(showAll + "aura").has("DBClusters/DBCluster/DBClusterMembers/DBClusterMember/DBClusterParameterGroupStatus=in-sync")
			u.do(stopAura)
			u.settle()
			u.do(startAura)
		},
	},
	{
		name: "a family that is not installed", call: "DescribeEngineDefaultParameters?DBParameterGroupFamily=postgres17", code: badMix, message: "PostgreSQL 17 is installed on no host",
		after: func(u *user) {
			u.do(with(newGroup, "DBParameterGroupFamily=postgres17")).has("DBParameterGroup/DBParameterGroupFamily=postgres17")
			u.try(values(setGroup, "work_mem=64MB")).is(badMix, "installed on no host")
			u.try(with(newDB, withMine)).is(badMix, "DBParameterGroupFamily postgres15")
		},
	},
	{
		name: "too many groups", setup: func(u *user) {
			for n := range 50 {
				u.do(with(newGroup, fmt.Sprintf("DBParameterGroupName=g%d", n)))
			}
		}, call: newGroup, code: "DBParameterGroupQuotaExceeded", message: "50",
		after: func(u *user) { u.do(newShared) },
	},
	{
		name: "more memory than there is", setup: having(newGroup, with(newDB, withMine)), call: values(setGroup, "shared_buffers=2GB pending-reboot"), code: badValue, message: "shared_buffers",
		after: func(u *user) {
			u.do(values(setGroup, "shared_buffers=512MB pending-reboot"))
			u.try(values(setGroup, "max_connections=60000 pending-reboot")).is(badValue, "max_connections")
			u.do(with(newGroup, "DBParameterGroupName=big"))
			u.do(values(with(setGroup, "DBParameterGroupName=big"), "shared_buffers=2GB pending-reboot"))
			u.try(with(modifyDB, "DBParameterGroupName=big")).is(badValue, "shared_buffers")
			u.try(with(newDB, "DBInstanceIdentifier=other", "DBParameterGroupName=big")).is(badValue, "shared_buffers")
		},
	},
	{name: "a group of another kind", setup: having(newShared), call: with(newDB, "DBParameterGroupName=ours"), code: noGroup, message: "ours"},
	{name: "a default group of another family", call: with(newDB, "DBParameterGroupName=default.postgres16"), code: badMix, message: "postgres15"},
	{name: "a cluster's group that is not there", call: newCluster + "&DBClusterParameterGroupName=none", code: "DBClusterParameterGroupNotFound", message: "none"},
	{name: "modify a default group", call: values(with(setGroup, "DBParameterGroupName=default.postgres15"), "work_mem=64MB"), code: badValue, message: "cannot be modified"},
	{name: "reset a default group", call: "ResetDBParameterGroup?DBParameterGroupName=default.postgres15&ResetAllParameters=true", code: badValue, message: "cannot be modified"},
	{name: "delete a default group", call: with(dropGroup, "DBParameterGroupName=default.postgres15"), code: badGroup, message: "Default"},
	{name: "modify nothing", call: values(setGroup, "work_mem=64MB"), code: noGroup, message: "mine"},
	{name: "copy nothing", call: copyGroup, code: noGroup, message: "mine"},
	{name: "copy onto itself", setup: having(newGroup), call: with(copyGroup, "TargetDBParameterGroupIdentifier=mine"), code: "DBParameterGroupAlreadyExists"},
	{name: "copy another region's", setup: having(newGroup), call: with(copyGroup, "SourceDBParameterGroupIdentifier=arn:aws:rds:eu-west-1:000000000001:pg:mine"), code: noGroup},
	{name: "reset without a word on what", setup: having(newGroup), call: resetGroup, code: missing, message: "Parameters"},
	{name: "reset all and some", setup: having(newGroup), call: values(resetGroup, "jit") + "&ResetAllParameters=true", code: badMix, message: "ResetAllParameters"},
	{name: "a source that is none", setup: having(newGroup), call: showMine + "&Source=mine", code: badValue, message: "Source"},
	{name: "a filter that is none", setup: having(newGroup), call: showMine + "&Filters.Filter.1.Name=x&Filters.Filter.1.Values.Value.1=y", code: badValue, message: "x"},
	{name: "defaults of no family", call: "DescribeEngineDefaultClusterParameters?DBParameterGroupFamily=mysql8.0", code: badValue, message: "mysql8.0"},
}, refusals(nil, newGroup, []refusal{
	{"DBParameterGroupName=-x", badValue, "DBParameterGroupName"},
	{"DBParameterGroupName=default.mine", badValue, "default."},
	{"DBParameterGroupName=a--b", badValue, "DBParameterGroupName"},
	{"DBParameterGroupName=a.b", badValue, "DBParameterGroupName"},
	{"DBParameterGroupName=" + strings.Repeat("a", 256), badValue, "255"},
	{"DBParameterGroupFamily=postgres14", badValue, "postgres14"},
	{"Description=", badValue, "Description"},
	{"-Description", missing, "Description"},
	{"-DBParameterGroupName", missing, "DBParameterGroupName"},
	{"Tags.Tag.1.Key=aws:x", badValue, "aws:"},
}), wrongValues())

// wrongValues are changes that must not reach a database.
func wrongValues() []scenario {
	var all []scenario
	for _, c := range []struct{ values, code, message string }{
		{"nothing=1", badValue, "Invalid parameter name: nothing"},
		{"work_mem=1", badValue, "between 64 and 2147483647"},
		{"work_mem=lots", badValue, "not a number"},
		{"work_mem=64mb", badValue, "unit"},
		{"work_mem", missing, "ParameterValue"},
		{"=1", missing, "ParameterName"},
		{"work_mem=64MB later", badValue, "ApplyMethod"},
		{"max_connections=200", badMix, "cannot use immediate apply method for static parameter"},
		{"data_directory=/x pending-reboot", badValue, "files and directories"},
		{"synchronous_standby_names=*", badValue, "Patroni"},
		{"archive_command=cp", badValue, "archive"},
		{"wal_level=logical pending-reboot", badValue, "rds.logical_replication"},
		{"shared_preload_libraries=nothing pending-reboot", badValue, "not among"},
		{"rds.extensions=file_fdw", badValue, "file_fdw"},
		{"howdah.extensions=file_fdw", badValue, "howdah.extensions"},
		{"datestyle=upside", badValue, "Unrecognized key word"},
		{"TimeZone=Nowhere/Else", badValue, ""},
		{"max_connections={DBInstanceClassMemory} pending-reboot", badValue, "of an instance with"},
		{"max_connections={Bad} pending-reboot", badValue, "unknown name"},
		{"apg_ccm_enabled=1 pending-reboot", badValue, "no such parameter"},
		{"huge_pages=on pending-reboot", badValue, "off, try"},
		{"lc_time=de_DE.UTF-8", badValue, "lc_time: use one of C, C.UTF-8, POSIX"},
		{"min_wal_size=2", badValue, "min_wal_size: it must be between 32"},
		{"max_stack_depth=8MB", badValue, "between 100 and 7680"},
		{"seq_page_cost=1e-400", badValue, "seq_page_cost"},
	} {
		all = append(all, scenario{name: c.values, setup: having(newGroup), call: values(setGroup, c.values), code: c.code, message: c.message, after: func(u *user) {
			u.do(showMine + "&Source=user").has("Parameters/Parameter#0")
		}})
	}
	many := make([]string, 21)
	for n := range many {
		many[n] = "work_mem=64MB"
	}
	return append(all,
		scenario{name: "one twice", setup: having(newGroup), call: values(setGroup, "work_mem=64MB", "WORK_MEM=65MB"), code: badValue, message: "more than once"},
		scenario{name: "21 at once", setup: having(newGroup), call: values(setGroup, many...), code: badValue, message: "20"},
	)
}

// obeys: the members of a database run with what is wanted now, as their Patroni and
// PostgreSQL say.
func (u *user) obeys(name string, generation int64, pendingRestart bool) {
	u.Helper()
	l := u.server.rds.Databases.Of(u.account)
	r, err := l.FindInstance(u.scope(), name)
	if err != nil {
		u.Fatal(err)
	}
	want, _ := group.Want(l.Look, r.Value)
	for _, m := range l.FactsOf(r.Value).Layout.Members {
		host, err := state.Load[member.Host](u.server.Cache, state.Host(m.Host))
		if err != nil {
			u.Fatal(err)
		}
		a := plan.Assign(want, plan.Layout{}, m, host.Value.Memory)
		a.Generation = generation
		u.put(state.Put(state.Assign(m.Host, a.ID), a),
			state.Put(patroni.MemberKey(want.ID, m.Name), map[string]any{"pending_restart": pendingRestart, "tags": map[string]any{"generation": generation}}))
	}
}

// TestCatalogueIsMissing: before an agent has read the parameters, calls can be tried
// again; nothing is guessed.
func TestCatalogueIsMissing(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	u.do(newGroup)
	w.put(state.Delete(state.Catalogue("15.18")))
	u.try(showMine).is("ServiceUnavailable", "have not been read yet")
	u.try(values(setGroup, "work_mem=64MB")).is("ServiceUnavailable", "have not been read yet")
	u.do(with(newDB, withMine))
}

// All parameters of a group are reset at once, however many were set: each raises an event.
func TestManyParametersAreReset(t *testing.T) {
	w := newWorld(t)
	w.catalogue()
	u := w.user(t)
	u.do(newGroup)
	key := state.ParameterGroup(string(param.Instance), u.account, u.region, "mine")
	catalogue, err := state.Get[param.Catalogue](t.Context(), w.server.Store, state.Catalogue("15.18"))
	if err != nil {
		t.Fatal(err)
	}
	family, _ := param.ParseFamily("postgres15")
	set := 0
	group, err := state.Update(t.Context(), w.server.Store, key, func(g *spec.ParameterGroup) error {
		set = 0
		for _, p := range catalogue.Value.All(family) {
			g.Values, set = g.Values.Set(p.Name, param.Version{Serial: 1, Value: &p.Default}), set+1
		}
		return nil
	})
	if err != nil || set < 200 {
		t.Fatalf("%d parameters are set, %v", set, err)
	}
	u.do(resetGroup + "&ResetAllParameters=true").has("DBParameterGroupName=mine")
	after, err := state.Get[spec.ParameterGroup](t.Context(), w.server.Store, key)
	if err != nil || after.Revision == group.Revision {
		t.Fatalf("nothing was written: %v", err)
	}
	for name := range after.Value.Values {
		if v := after.Value.Values.Latest(name); v != nil {
			t.Errorf("%s is still %v", name, *v)
		}
	}
}
