package event

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Why events of RDS are not raised. Those of source types that Howdah does not have
// at all (proxies, blue/green deployments, shard groups) are not listed.
const (
	noMajor   = "major versions are not upgraded"
	itRetries = "what cannot be made is tried again until it can be: nothing fails for good"
	noChecks  = "a minor upgrade has no steps before and after it"
	ofHosts   = "hosts and their operating systems are their operator's"
	otherWord = "another event of the same change is raised"
	noGlobal  = "there are no global clusters"
)

// notRaised are the events of RDS's list that nothing raises, and why.
var notRaised = map[SourceType]map[string]string{
	Instance: {
		"0154": "what is stopped stays stopped, for as long as users want",
		"0015": otherWord + " (0049): endpoints are addresses, and no DNS has to follow",
		"0034": "a failover that was asked for is carried out, however recent the last one is",
		"0050": "whoever is promoted was a standby: that is a failover", "0051": "whoever is promoted was a standby: that is a failover",
		"0065": "a failover is one transaction: there is none in part",
		"0278": itRetries, "0202": itRetries,
		"0035": "values that PostgreSQL would refuse are refused at the API",
		"0036": "no network of a database is managed that could be incompatible",
		"0221": "a database whose storage is full goes on", "0222": "a database whose storage is full goes on",
		"0404": "shared_buffers is not changed by the platform while it runs",
		"0062": "replication cannot be stopped by hand", "0233": "SwitchoverReadReplica is of Oracle's Data Guard",
		"0415": noMajor, "0416": noMajor, "0398": noMajor, "0399": noMajor,
		"0264": noChecks, "0265": noChecks, "0269": noChecks, "0270": noChecks,
		"0422": ofHosts, "0230": ofHosts,
		"0502": "it promises a restart, and certificates are rotated without one",
	},
	Cluster: {
		"0152": "stopping is tried until it is done", "0153": "what is stopped stays stopped, for as long as users want",
		"0070": "a failover that is given up has promoted nobody: 0069 is raised",
		"0176": noMajor, "0417": noMajor, "0287": ofHosts, "0288": ofHosts, "0289": ofHosts, "0290": otherWord + " (0173)",
		"0410": noChecks, "0411": noChecks, "0412": noChecks, "0413": noChecks, "0414": noChecks,
		"0181": noGlobal, "0182": noGlobal, "0183": noGlobal, "0184": noGlobal, "0185": noGlobal, "0186": noGlobal, "0187": noGlobal,
		"0238": noGlobal, "0239": noGlobal, "0240": noGlobal, "0241": noGlobal, "0397": noGlobal, "0423": noGlobal,
	},
}

// listed are the events of RDS's list for the source types that Howdah has.
var listed = map[SourceType]string{
	Instance: "0005 0003 0006 0004 0087 0088 0154 0001 0002 0032 0028 0012 0014 0018 0017 0217 0218 0223 0224 0225 0011 0092 0016 0024 0025 0030 0029 0013 0049 0015 0034 0050 0051 0065 " +
		"0020 0021 0052 0053 0361 0362 0031 0035 0036 0278 0007 0089 0221 0222 0404 0045 0046 0057 0062 0202 0233 0415 0416 0019 " +
		"0026 0027 0047 0155 0264 0265 0266 0267 0268 0269 0270 0398 0399 0422 0501 0502 0230 0385",
	Cluster: "0016 0170 0171 0150 0151 0152 0153 0172 0069 0070 0071 0072 0073 0156 0173 0176 0286 0287 0288 0289 0290 0410 0411 0412 0413 0414 0417 " +
		"0181 0182 0183 0184 0185 0186 0187 0238 0239 0240 0241 0397 0423",
	ParameterGroup:  "0037",
	Snapshot:        "0040 0041 0042 0043 0059 0060 0061 0090 0091 0190 0196 0197",
	ClusterSnapshot: "0074 0075 0168 0169",
}

// TestEveryEventIsRaisedOrCannotBe: of each event that RDS has, either the catalog has
// its text and some code raises it, or it is said above why nothing can cause it.
func TestEveryEventIsRaisedOrCannotBe(t *testing.T) {
	raised := raisedBy(t)
	for kind, numbers := range listed {
		for _, number := range strings.Fields(numbers) {
			_, known := catalog[kind][number]
			reason, excused := notRaised[kind][number]
			switch {
			case excused && reason == "":
				t.Errorf("%s %s: no reason", kind, number)
			case excused && len(raised[number]) > 0 && !slices.Contains(strings.Fields(listed[other(kind)]), number):
				t.Errorf("%s %s is raised in %q, and said not to be", kind, number, raised[number])
			case !excused && !known:
				t.Errorf("%s %s: neither in the catalog nor said why not", kind, number)
			case !excused && len(raised[number]) == 0:
				t.Errorf("%s %s is in the catalog, and nothing raises it", kind, number)
			}
		}
	}
	for kind, all := range notRaised {
		for _, number := range slices.Sorted(maps.Keys(all)) {
			if !slices.Contains(strings.Fields(listed[kind]), number) {
				t.Errorf("%s %s is no event of RDS's list", kind, number)
			}
		}
	}
	for kind, all := range catalog {
		for number := range all {
			if ours := strings.HasPrefix(number, "H"); ours && len(raised[number]) == 0 {
				t.Errorf("%s %s of our own is raised by nothing", kind, number)
			} else if !ours && !slices.Contains(strings.Fields(listed[kind]), number) {
				t.Errorf("%s %s is no event of RDS's list", kind, number)
			}
		}
	}
}

// other is the source type that shares numbers with one.
func other(kind SourceType) SourceType {
	if kind == Instance {
		return Cluster
	}
	return Instance
}

var quoted = regexp.MustCompile(`"(0[0-9]{3}|H[0-9]{3})"`)

// raisedBy are the files that name the number of an event, by number.
func raisedBy(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, dir := range []string{"../../control", "../../aws", "../../admin"} {
		err := filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			for _, m := range quoted.FindAllStringSubmatch(string(text), -1) {
				found[m[1]] = append(found[m[1]], file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
