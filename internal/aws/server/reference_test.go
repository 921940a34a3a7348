package server

import (
	"os"
	"slices"
	"strings"
	"testing"

	model "howdah/api/rds"
	"howdah/internal/aws/rds"
	"howdah/internal/aws/rds/catalogue"
)

// TestReferenceIsUpToDate: `make generate` writes it.
func TestReferenceIsUpToDate(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guide/api.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != Reference() {
		t.Error("docs/guide/api.md is old: run `make generate`, or go run ./cmd/howdah gen-api docs/guide/api.md")
	}
}

// TestEveryActionIsInTheReference: once, with one of four words.
func TestEveryActionIsInTheReference(t *testing.T) {
	text := Reference()
	for _, a := range model.Service.Actions {
		word, _ := coverage(a.Name)
		if n := strings.Count(text, "\n| "+a.Name+" | "+word+" |"); n != 1 {
			t.Errorf("%s is there %d times", a.Name, n)
		}
		if !slices.Contains([]string{does, doesEmpty, doesNot, doesNotYet}, word) {
			t.Errorf("%s: %s", a.Name, word)
		}
	}
	if len(model.Service.Actions) != 168 {
		t.Errorf("the model has %d actions", len(model.Service.Actions))
	}
}

// TestTablesFitTheModel: what they name exists, and is in one table only.
func TestTablesFitTheModel(t *testing.T) {
	does, none := rds.Actions(new(Server).rds()), catalogue.Nothing(catalogue.Config{})
	for name := range catalogue.Skipped {
		if _, ok := model.Service.Action(name); !ok {
			t.Errorf("skipped: RDS has no %s", name)
		}
		if _, ok := does[name]; ok {
			t.Errorf("%s is skipped and done", name)
		}
		_, isEmpty := none[name]
		if describes := strings.HasPrefix(name, "Describe"); describes != isEmpty {
			t.Errorf("%s: an empty list: %t", name, isEmpty)
		}
	}
	for name := range none {
		if catalogue.Skipped[name] == "" {
			t.Errorf("%s answers an empty list for no reason", name)
		}
	}
	if len(catalogue.Skipped) != 36 {
		t.Errorf("%d actions are skipped, of 36", len(catalogue.Skipped))
	}
	for name := range notes {
		if _, ok := does[name]; !ok {
			t.Errorf("a note on %s, which is not done", name)
		}
	}
}

// TestSkippedActions: an empty list for those that describe, and for the others an
// error that says why.
func TestSkippedActions(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	having(newDB, newCluster)(u)
	none := catalogue.Nothing(catalogue.Config{})
	lists := map[string]string{
		"DescribeDBClusterBacktracks": "?DBClusterIdentifier=aura", "DescribeTenantDatabases": "?DBInstanceIdentifier=db",
	}
	for name, why := range catalogue.Skipped {
		if _, isEmpty := none[name]; !isEmpty {
			u.try(name).is("InvalidAction", "The action "+name+" is not available in Howdah: "+why+".")
			continue
		}
		a := u.do(name + lists[name])
		for _, child := range a.result().children {
			if len(child.children) > 0 || strings.TrimSpace(child.content) != "" {
				t.Errorf("%s answers something: %s", name, a.body)
			}
		}
		if len(a.result().children) == 0 {
			t.Errorf("%s has no list: %s", name, a.body)
		}
		u.try(name+"?MaxRecords=5&DBClusterIdentifier=aura").is(badValue, "MaxRecords")
	}
	u.try("DescribeDBClusterBacktracks").is(missing, "DBClusterIdentifier")
	u.try("DescribeDBClusterBacktracks?DBClusterIdentifier=none").is(noCluster, "none")
	u.try("DescribeDBClusterBacktracks?DBClusterIdentifier=aura&BacktrackIdentifier=x").is("DBClusterBacktrackNotFoundFault", "x")
	u.try("DescribeTenantDatabases?DBInstanceIdentifier=none").is("DBInstanceNotFound", "none")
	u.do("DescribeTenantDatabases")
	u.try("DescribeDBSecurityGroups?DBSecurityGroupName=x").is("DBSecurityGroupNotFound", "x")
	u.try("DescribeReservedDBInstances?ReservedDBInstanceId=x").is("ReservedDBInstanceNotFound", "x")
	u.try("DescribeDBSnapshots").is("InvalidAction", "not available in this version")
	u.try("DescribeEverything").is("InvalidAction", "not valid for this web service")
}
