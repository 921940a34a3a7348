package server

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestAPI plays all scenarios, and makes sure that every action was seen to
// succeed: with that its answer was held against the model.
func TestAPI(t *testing.T) {
	w := newWorld(t)
	groups := map[string][]scenario{
		"create instance":     createScenarios,
		"modify instance":     modifyScenarios,
		"instance states":     stateScenarios,
		"parameter groups":    groupScenarios,
		"groups at the start": startScenarios,
		"replicas":            replicaScenarios,
		"clusters":            clusterScenarios,
		"modify clusters":     modifyClusterScenarios,
		"multi-AZ cluster":    trioScenarios,
		"endpoints":           endpointScenarios,
		"lists":               listScenarios,
		"events":              eventScenarios,
		"tags":                tagScenarios,
		"event subscriptions": eventSubscriptionScenarios,
		"topics":              topicScenarios,
		"subscriptions":       subscriptionScenarios,
		"publishing":          publishScenarios,
		"catalogue":           catalogueScenarios,
		"account":             accountScenarios,
		"subnet groups":       subnetGroupScenarios,
		"option groups":       optionGroupScenarios,
		"roles":               roleScenarios,
		"security groups":     securityGroupScenarios,
		"logs":                logScenarios,
		"logs, refused":       logRefusals,
		"maintenance":         maintenanceScenarios,
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		t.Run(name, func(t *testing.T) { w.run(t, groups[name]) })
	}
	w.backups() // all above play in a home without a repository
	withBackups := map[string][]scenario{
		"snapshots":          snapshotScenarios,
		"snapshots, refused": snapshotRefusals,
		"moments":            momentScenarios, "moments, refused": momentRefusals, "automated backups": automatedScenarios, "final snapshots": finalScenarios,
		"restored clusters": restoreClusterScenarios, "clones": cloneScenarios, "replicated backups": replicationScenarios,
		"restored snapshots": restoreScenarios,
	}
	for _, name := range slices.Sorted(maps.Keys(withBackups)) {
		t.Run(name, func(t *testing.T) { w.run(t, withBackups[name]) })
	}
	if t.Failed() {
		return
	}
	for service, all := range done {
		for _, name := range all {
			if !w.succeeded[name] {
				t.Errorf("no scenario has %s of %s succeed", name, service)
			}
		}
	}
}

// having makes calls before a scenario, each of them carried out.
func having(calls ...string) func(*user) {
	return func(u *user) {
		u.Helper()
		for _, call := range calls {
			u.do(call)
			u.settle()
		}
	}
}

// with changes the parameters of a call: "Name=value" sets one, "-Name" takes it
// away.
func with(call string, changes ...string) string {
	action, query, _ := strings.Cut(call, "?")
	parts := strings.Split(query, "&")
	for _, change := range changes {
		name, _, set := strings.Cut(change, "=")
		name = strings.TrimPrefix(name, "-")
		parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, name+"=") })
		if set {
			parts = append(parts, change)
		}
	}
	return action + "?" + strings.Join(parts, "&")
}

// Calls that scenarios build on.
const (
	newDB = "CreateDBInstance?DBInstanceIdentifier=db&DBInstanceClass=db.t3.micro&Engine=postgres&AllocatedStorage=20" +
		"&MasterUsername=boss&MasterUserPassword=" + password
	newCluster = "CreateDBCluster?DBClusterIdentifier=aura&Engine=aurora-postgresql&MasterUsername=boss&MasterUserPassword=" + password
	newMember  = "CreateDBInstance?DBInstanceIdentifier=aura-1&DBInstanceClass=db.t3.micro&Engine=aurora-postgresql&DBClusterIdentifier=aura"
	newTrio    = "CreateDBCluster?DBClusterIdentifier=trio&Engine=postgres&DBClusterInstanceClass=db.m5.large&AllocatedStorage=100" +
		"&StorageType=io1&Iops=1000&MasterUsername=boss&MasterUserPassword=" + password
	newReplica = "CreateDBInstanceReadReplica?DBInstanceIdentifier=copy&SourceDBInstanceIdentifier=db"

	dropDB  = "DeleteDBInstance?DBInstanceIdentifier=db&SkipFinalSnapshot=true"
	showDB  = "DescribeDBInstances?DBInstanceIdentifier=db"
	showAll = "DescribeDBClusters?DBClusterIdentifier="
)

// refusals are scenarios of one call with one thing wrong.
func refusals(setup func(*user), call string, all []refusal) []scenario {
	var scenarios []scenario
	for _, r := range all {
		scenarios = append(scenarios, scenario{
			name: r.change, setup: setup, call: with(call, strings.Split(r.change, "&")...), code: r.code, message: r.message,
		})
	}
	return scenarios
}

type refusal struct{ change, code, message string }
