package event

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/spec"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var source = Source{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Type: Instance, Name: "db"}

var moment = time.Date(2026, 11, 23, 5, 0, 0, 123456789, time.UTC)

// TestCatalog holds all events against a text that people read beside RDS's own
// list.
func TestCatalog(t *testing.T) {
	var b strings.Builder
	for _, kind := range []SourceType{Cluster, Instance} {
		for _, number := range slices.Sorted(maps.Keys(catalog[kind])) {
			e, err := Make(Source{Type: kind, Name: "x"}, number, moment)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%-10s  %-17s  %-20s  %s\n", kind, e.ID, strings.Join(e.Categories, ","), e.Message)
		}
	}
	golden := filepath.Join("testdata", "catalog.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}

var numberForm = regexp.MustCompile(`^([0-9]{4}|H[0-9]{3})$`)

func TestCatalogIsWellFormed(t *testing.T) {
	for kind, all := range catalog {
		for number, k := range all {
			if !numberForm.MatchString(number) {
				t.Errorf("%s %s: not a number of an event", kind, number)
			}
			if !slices.Contains(Categories(kind), k.category) {
				t.Errorf("%s %s: %s has no category %q", kind, number, kind, k.category)
			}
			if gaps := strings.Count(k.message, "%"); gaps != strings.Count(k.message, "%s") {
				t.Errorf("%s %s: the gaps of %q", kind, number, k.message)
			}
			if strings.HasPrefix(number, "H") && !strings.HasSuffix(k.message, ".") && !strings.HasSuffix(k.message, "%s") && !strings.HasSuffix(k.message, "again") {
				t.Errorf("%s %s: %q does not end as a sentence", kind, number, k.message)
			}
		}
	}
}

// TestWordsOfRDS: scripts compare these texts, of which RDS sends some with a full stop
// and most without one, and some with a capital that its documentation does not have.
func TestWordsOfRDS(t *testing.T) {
	for number, want := range map[string]string{
		"0001": "Backing up DB instance", "0002": "Finished DB Instance backup",
		"0004": "DB instance shutdown", "0005": "DB instance created", "0006": "DB instance restarted",
		"0013": "Multi-AZ instance failover started.", "0049": "Multi-AZ instance failover completed",
		"0014": "Finished applying modification to DB instance class",
		"0016": "Reset master credentials", "0021": "Recovery of the DB instance is complete.",
		"0025": "Finished applying modification to convert to a Multi-AZ DB Instance",
		"0087": "DB instance stopped", "0088": "DB instance started", "0092": "Finished updating DB parameter group",
	} {
		if e, err := Make(source, number, moment); err != nil || e.Message != want {
			t.Errorf("%s: %q, %v, want %q", number, e.Message, err, want)
		}
	}
	shop := Source{Scope: source.Scope, Type: Cluster, Name: "shop"}
	if e, err := Make(shop, "0071", moment, "shop-1"); err != nil || e.Message != "Completed failover to DB instance: shop-1" {
		t.Errorf("%q, %v", e.Message, err)
	}
}

func TestMake(t *testing.T) {
	got, err := Make(source, "0031", moment, "failed")
	if err != nil {
		t.Fatal(err)
	}
	want := Event{
		ID: "RDS-EVENT-0031", SourceType: Instance, Source: "db", ARN: "arn:aws:rds:us-east-1:123456789012:db:db", Categories: []string{"failure"},
		Message: "DB instance put into failed state. RDS recommends that you initiate a point-in-time-restore.", At: moment,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMakeOfOurs(t *testing.T) {
	cluster := source
	cluster.Type, cluster.Name = Cluster, "aura"
	got, err := Make(cluster, "H001", moment)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != "HOWDAH-EVENT-001" || got.ARN != "arn:aws:rds:us-east-1:123456789012:cluster:aura" {
		t.Errorf("%+v", got)
	}
}

func TestMakeRefuses(t *testing.T) {
	for _, number := range []string{"", "9999", "5", "0170"} {
		if _, err := Make(source, number, moment); err == nil {
			t.Errorf("%q: made for an instance", number)
		}
	}
	if _, err := Make(Source{Type: "db-toaster"}, "0005", moment); err == nil {
		t.Error("made for a toaster")
	}
}

// TestKey: events sort by time, the same event has one key, and others of the
// moment have keys of their own.
func TestKey(t *testing.T) {
	where := func(number, key string, at time.Time) string {
		e, err := Make(source, number, at)
		if err != nil {
			t.Fatal(err)
		}
		return e.Key(key)
	}
	first := where("0005", "db-1", moment)
	if first != where("0005", "db-1", moment) {
		t.Error("the same event has two keys")
	}
	if later := where("0001", "db-0", moment.Add(time.Second)); later <= first {
		t.Errorf("%s does not come after %s", later, first)
	}
	for _, other := range []string{where("0006", "db-1", moment), where("0005", "db-2", moment)} {
		if other == first {
			t.Errorf("two events at %s", first)
		}
	}
}

func TestARNKind(t *testing.T) {
	if ARNKind(Instance) != "db" || ARNKind(Cluster) != "cluster" {
		t.Error(ARNKind(Instance), ARNKind(Cluster))
	}
}

func TestCategories(t *testing.T) {
	if len(SourceTypes) != len(categories) {
		t.Errorf("%d source types, and categories of %d", len(SourceTypes), len(categories))
	}
	for _, kind := range SourceTypes {
		if all := Categories(kind); len(all) == 0 || !slices.IsSorted(all) {
			t.Errorf("categories of %s: %q", kind, all)
		}
	}
	if Categories("db-toaster") != nil {
		t.Error("a toaster has categories")
	}
}
