package server

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	showPending = "DescribePendingMaintenanceActions"
	instanceARN = "arn:aws:rds:us-east-1:{account}:db:db"
	clusterARN  = "arn:aws:rds:us-east-1:{account}:cluster:aura"
	noPending   = "PendingMaintenanceActions/ResourcePendingMaintenanceActions#0"
	onePending  = "PendingMaintenanceActions/ResourcePendingMaintenanceActions/"
	applyTo     = "ApplyPendingMaintenanceAction?ApplyAction=db-upgrade&ResourceIdentifier="
)

// upgradeHosts has an operator bring a newer PostgreSQL onto hosts.
func (w *world) upgradeHosts(version string, zones ...string) {
	w.Helper()
	for _, zone := range zones {
		key := state.Host("host-" + zone)
		h, err := state.Load[member.Host](w.server.Cache, key)
		if err != nil {
			w.Fatal(err)
		}
		next := h.Value
		next.Majors = map[int]string{15: version}
		w.put(state.Put(key, next))
	}
}

// keep is one round of what the platform does by itself.
func (w *world) keep() {
	w.server.rds.Upkeep.House().Keep(w.Context())
}

func TestMinorUpgrades(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	sunday := at(t, "2026-11-22T12:00:00Z")
	w.at(sunday)
	u.do(with(newDB, "MultiAZ=true", "AutoMinorVersionUpgrade=false", "PreferredMaintenanceWindow=mon:05:00-mon:06:00", "PreferredBackupWindow=01:00-02:00"))
	u.settle()
	u.do(showPending).has(noPending)
	u.try(u.fill(applyTo+instanceARN+"&OptInType=immediate")).is("ResourceNotFoundFault", "no pending maintenance action")

	w.upgradeHosts("15.19", "a")
	w.keep()
	u.do(showPending).has(noPending) // one of the hosts does not have it
	w.upgradeHosts("15.19", "b", "c")
	w.keep()
	w.keep()
	u.do(showPending).has(
		onePending+"ResourceIdentifier="+u.fill(instanceARN),
		onePending+"PendingMaintenanceActionDetails/PendingMaintenanceAction/Action=db-upgrade",
		onePending+"PendingMaintenanceActionDetails/PendingMaintenanceAction/Description=Upgrade of postgres from 15.18 to 15.19",
	)
	u.do("DescribeEvents?EventCategories.EventCategory.1=maintenance&StartTime=2026-11-22T00:00:00Z&EndTime=2026-11-24T00:00:00Z").has(
		"Events/Event#1", "Events/Event/Message=The DB instance has a DB engine minor version upgrade available.")
	w.at(at(t, "2026-11-23T05:30:00Z"))
	w.keep()
	if got := u.instanceRecord("db"); got.Restart != 0 || got.Version != "15.18" {
		t.Errorf("upgraded although nobody wanted it: %+v", got)
	}
	w.at(sunday)
	u.do(applyTo+instanceARN+"&OptInType=next-maintenance").has(
		"ResourcePendingMaintenanceActions/PendingMaintenanceActionDetails/PendingMaintenanceAction/OptInStatus=next-maintenance",
		"ResourcePendingMaintenanceActions/PendingMaintenanceActionDetails/PendingMaintenanceAction/CurrentApplyDate=2026-11-23T05:00:00.000Z",
	)
	u.do(applyTo + instanceARN + "&OptInType=undo-opt-in")
	w.at(at(t, "2026-11-23T05:30:00Z"))
	w.keep()
	if got := u.instanceRecord("db"); got.Restart != 0 || len(got.OptIns) != 0 {
		t.Errorf("upgraded although it was taken back: %+v", got)
	}
	u.do(applyTo + instanceARN + "&OptInType=next-maintenance")
	w.keep()
	u.upgraded(t)
}

// upgraded: the upgrade began, and ends.
func (u *user) upgraded(t *testing.T) {
	t.Helper()
	if got := u.instanceRecord("db"); got.Restart != 1 || got.Version != "15.19" || got.OptedIn(spec.DBUpgrade) {
		t.Errorf("not upgraded: %+v", got)
	}
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=upgrading", "DBInstances/DBInstance/EngineVersion=15.19")
	u.settle()
	u.do(showDB).has("DBInstances/DBInstance/DBInstanceStatus=available")
	u.do(showPending).has(noPending)
}

func TestMinorUpgradesAtOnceAndByThemselves(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		w := newWorld(t)
		u := w.user(t)
		u.do(with(newDB, "MultiAZ=true"))
		u.settle()
		w.upgradeHosts("15.19", "a", "b", "c")
		u.do(applyTo + instanceARN + "&OptInType=immediate").has(
			"ResourcePendingMaintenanceActions/PendingMaintenanceActionDetails/PendingMaintenanceAction/OptInStatus=immediate")
		u.try(u.fill(applyTo+instanceARN+"&OptInType=immediate")).is("ResourceNotFoundFault", "no pending maintenance action")
		u.upgraded(t)
	})
	t.Run("by itself, in the window", func(t *testing.T) {
		w := newWorld(t)
		u := w.user(t)
		w.at(at(t, "2026-11-22T12:00:00Z"))
		u.do(with(newDB, "PreferredMaintenanceWindow=mon:05:00-mon:06:00", "PreferredBackupWindow=01:00-02:00"))
		u.settle()
		w.upgradeHosts("15.19", "a", "b", "c")
		u.do(showPending).has(onePending + "PendingMaintenanceActionDetails/PendingMaintenanceAction/AutoAppliedAfterDate=2026-11-23T05:00:00.000Z")
		w.keep()
		if got := u.instanceRecord("db"); got.Restart != 0 {
			t.Error("upgraded outside of the window")
		}
		w.at(at(t, "2026-11-23T05:00:00Z").Add(time.Second))
		w.keep()
		u.upgraded(t)
	})
	t.Run("a cluster as a whole", func(t *testing.T) {
		w := newWorld(t)
		u := w.user(t)
		u.do(newCluster)
		u.do("CreateDBInstance?DBInstanceIdentifier=one&DBClusterIdentifier=aura&Engine=aurora-postgresql&DBInstanceClass=db.t3.micro")
		u.settle()
		w.upgradeHosts("15.19", "a", "b", "c")
		u.do(with(showPending, "Filters.Filter.1.Name=db-cluster-id", "Filters.Filter.1.Values.Value.1=aura")).has(onePending + "ResourceIdentifier=" + u.fill(clusterARN))
		u.do(applyTo + clusterARN + "&OptInType=immediate")
		u.do("DescribeDBInstances?DBInstanceIdentifier=one").has("DBInstances/DBInstance/EngineVersion=15.19", "DBInstances/DBInstance/DBInstanceStatus=modifying")
		u.settle()
		u.do("DescribeDBClusters?DBClusterIdentifier=aura").has("DBClusters/DBCluster/EngineVersion=15.19", "DBClusters/DBCluster/Status=available")
	})
}

// aged is an instance that was made when its hosts had an older PostgreSQL.
func aged(u *user) {
	u.do(newDB)
	u.settle()
	i := u.instanceRecord("db")
	i.Version = "15.17"
	u.put(state.Put(state.Instance(i.Account, i.Region, i.Name), i))
}

var maintenanceScenarios = []scenario{
	{name: "what is pending", setup: aged, call: showPending, want: []string{onePending + "PendingMaintenanceActionDetails/PendingMaintenanceAction/Action=db-upgrade"}},
	{
		name: "apply it at once", setup: aged, call: applyTo + instanceARN + "&OptInType=immediate",
		want: []string{"ResourcePendingMaintenanceActions/PendingMaintenanceActionDetails/PendingMaintenanceAction/OptInStatus=immediate"},
	},
	{name: "an unknown action", setup: having(newDB), call: "ApplyPendingMaintenanceAction?ApplyAction=paint&OptInType=immediate&ResourceIdentifier=" + instanceARN, code: "InvalidParameterValue", message: "paint"},
	{name: "an unknown opt-in", setup: having(newDB), call: applyTo + instanceARN + "&OptInType=later", code: "InvalidParameterValue", message: "later"},
	{name: "a resource that is not there", call: applyTo + instanceARN + "&OptInType=immediate", code: "ResourceNotFoundFault", message: "db"},
	{name: "another account's", setup: having(newDB), call: applyTo + "arn:aws:rds:us-east-1:999999999999:db:db&OptInType=immediate", code: "ResourceNotFoundFault", message: "999999999999"},
	{name: "what is not pending", setup: having(newDB), call: "ApplyPendingMaintenanceAction?ApplyAction=system-update&OptInType=immediate&ResourceIdentifier=" + instanceARN, code: "ResourceNotFoundFault", message: "system-update"},
	{name: "describing a resource that is not there", call: showPending + "?ResourceIdentifier=" + instanceARN, code: "ResourceNotFoundFault", message: "db"},
	{name: "an unknown filter", call: showPending + "?Filters.Filter.1.Name=color&Filters.Filter.1.Values.Value.1=red", code: "InvalidParameterValue", message: "color"},
	{name: "a wrong marker", call: showPending + "?Marker=x", code: "InvalidParameterValue", message: "Invalid marker"},
}

// While an instance without a standby is upgraded nobody serves, which events say.
func TestUpgradeWithoutAStandbyIsOffLine(t *testing.T) {
	for multiAZ, want := range map[string]int{"true": 1, "false": 3} {
		w := newWorld(t)
		u := w.user(t)
		u.do(with(newDB, "MultiAZ="+multiAZ))
		u.settle()
		w.upgradeHosts("15.19", "a", "b", "c")
		u.do(applyTo + instanceARN + "&OptInType=immediate")
		u.do("DescribeEvents?EventCategories.EventCategory.1=maintenance").has("Events/Event#" + strconv.Itoa(want))
		if got := u.instanceRecord("db").ChangeEvents; slices.Contains(got, "0027") != (multiAZ == "false") || !slices.Contains(got, "0047") {
			t.Errorf("MultiAZ %s: when it is done %q", multiAZ, got)
		}
	}
}
