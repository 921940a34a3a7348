package spec

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// refusedWith is nil when an error has this code of the API; "" is no error.
func refusedWith(err error, code string) bool {
	var invalid *Invalid
	if code == "" || !errors.As(err, &invalid) {
		return code == "" && err == nil
	}
	return invalid.Code == code && invalid.Message != "" && strings.Contains(invalid.Error(), code)
}

const (
	value = "InvalidParameterValue"
	mix   = "InvalidParameterCombination"
)

func TestClasses(t *testing.T) {
	const gib = 1 << 30
	cases := map[string]Class{
		"db.t1.micro":     {CPUs: 1, Memory: 613 << 20},
		"db.t3.micro":     {CPUs: 2, Memory: gib},
		"db.t3.2xlarge":   {CPUs: 8, Memory: 32 * gib},
		"db.t4g.medium":   {CPUs: 2, Memory: 4 * gib},
		"db.m1.small":     {CPUs: 1, Memory: 1825361100},
		"db.m2.4xlarge":   {CPUs: 8, Memory: 73443940761},
		"db.m3.2xlarge":   {CPUs: 8, Memory: 30 * gib},
		"db.m4.16xlarge":  {CPUs: 64, Memory: 256 * gib},
		"db.m5.large":     {CPUs: 2, Memory: 8 * gib},
		"db.m5.24xlarge":  {CPUs: 96, Memory: 384 * gib},
		"db.m6g.16xlarge": {CPUs: 64, Memory: 256 * gib},
		"db.m7g.xlarge":   {CPUs: 4, Memory: 16 * gib},
		"db.r5.large":     {CPUs: 2, Memory: 16 * gib},
		"db.r6g.12xlarge": {CPUs: 48, Memory: 384 * gib},
		"db.r7g.8xlarge":  {CPUs: 32, Memory: 256 * gib},
		"db.cr1.8xlarge":  {CPUs: 32, Memory: 244 * gib},
	}
	for name, want := range cases {
		want.Name = name
		got, err := CheckClass(name)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "db.t3", "db.t3.", "t3.micro", "db.t3.MICRO", "db.m6g.24xlarge", "db.t2.2xlarge", "db.serverless"} {
		if _, err := CheckClass(name); !refusedWith(err, value) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClassesAreInOrderAndWhole(t *testing.T) {
	all := Classes()
	for n, c := range all {
		if c.CPUs < 1 || c.Memory < 512<<20 || c.Name == "" {
			t.Errorf("class %+v", c)
		}
		if n > 0 && all[n-1].Name >= c.Name {
			t.Errorf("%s comes after %s", c.Name, all[n-1].Name)
		}
	}
	if len(all) < 80 {
		t.Errorf("%d classes", len(all))
	}
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "a1", "a-b-c", "a" + strings.Repeat("1", 62)} {
		if err := CheckName("X", good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "1", "-a", "a-", "a--b", "A", "a_b", "a.b", "é", "a b", "a\n", strings.Repeat("a", 64)} {
		if err := CheckName("TheName", bad); !refusedWith(err, value) || !strings.Contains(err.Error(), "TheName") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCheckMasterUser(t *testing.T) {
	for _, good := range []string{"a", "Boss", "boss_1", strings.Repeat("a", 63)} {
		if err := CheckMasterUser(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "1a", "_a", "a-b", "a b", "é", "rdsadmin", "RdsAdmin", "pg_x", "PG_x", "rds_x", "public", "current_user", strings.Repeat("a", 64)} {
		if err := CheckMasterUser(bad); !refusedWith(err, value) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestCheckPassword(t *testing.T) {
	for _, good := range []string{"12345678", "a'b;c--d\\e%f", "~!#$%^&*()", strings.Repeat("x", 128)} {
		if err := CheckPassword(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "1234567", strings.Repeat("x", 129), "with/slash", "with\"quote", "with@sign", "with space", "with\nline", "with\x7fdel", "mitümlaut"} {
		err := CheckPassword(bad)
		if !refusedWith(err, value) {
			t.Errorf("%q: %v", bad, err)
		}
		if len(bad) > 1 && strings.Contains(err.Error(), bad) {
			t.Errorf("the message holds the password: %v", err)
		}
	}
}

func TestCheckDBName(t *testing.T) {
	for name, code := range map[string]string{
		"": "", "shop": "", "_x1": "", strings.Repeat("a", 63): "", "1a": value, "a-b": value, "template0": value, "Template1": value,
		"rdsadmin": value, "db": value, strings.Repeat("a", 64): value, "a;b": value,
	} {
		if err := CheckDBName(name); !refusedWith(err, code) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	cases := []struct {
		name string
		err  error
		code string
	}{
		{"port 1149", CheckPort(1149), value},
		{"port 1150", CheckPort(1150), ""},
		{"port 65535", CheckPort(65535), ""},
		{"port 65536", CheckPort(65536), value},
		{"no backups", CheckRetention(0, 0), ""},
		{"35 days", CheckRetention(35, 1), ""},
		{"36 days", CheckRetention(36, 0), value},
		{"no backups of a cluster", CheckRetention(0, 1), value},
		{"-1 days", CheckRetention(-1, 0), value},
		{"tier 0", CheckTier(0), ""},
		{"tier 15", CheckTier(15), ""},
		{"tier 16", CheckTier(16), value},
		{"tier -1", CheckTier(-1), value},
	}
	for _, c := range cases {
		if !refusedWith(c.err, c.code) {
			t.Errorf("%s: %v, want %q", c.name, c.err, c.code)
		}
	}
}

func TestCheckStorage(t *testing.T) {
	cases := []struct {
		name     string
		in, want Storage
		code     string
	}{
		{"the default", Storage{GiB: 20}, Storage{Type: "gp2", GiB: 20}, ""},
		{"too small", Storage{GiB: 19}, Storage{}, value},
		{"gp3, the smallest", Storage{Type: "gp3", GiB: 20}, Storage{Type: "gp3", GiB: 20}, ""},
		{"gp3, too small", Storage{Type: "gp3", GiB: 19}, Storage{}, value},
		{"none", Storage{}, Storage{}, value},
		{"the largest", Storage{GiB: 65536}, Storage{Type: "gp2", GiB: 65536}, ""},
		{"too large", Storage{GiB: 65537}, Storage{}, value},
		{"iops alone mean io1", Storage{GiB: 100, IOPS: 1000}, Storage{Type: "io1", GiB: 100, IOPS: 1000}, ""},
		{"io2", Storage{Type: "io2", GiB: 100, IOPS: 256000}, Storage{Type: "io2", GiB: 100, IOPS: 256000}, ""},
		{"io1 without iops", Storage{Type: "io1", GiB: 100}, Storage{}, mix},
		{"io1, too small", Storage{Type: "io1", GiB: 99, IOPS: 1000}, Storage{}, value},
		{"io1, too few", Storage{Type: "io1", GiB: 100, IOPS: 99}, Storage{}, value},
		{"io1, too many", Storage{Type: "io1", GiB: 100, IOPS: 256001}, Storage{}, value},
		{"gp2 with iops", Storage{Type: "gp2", GiB: 100, IOPS: 1000}, Storage{}, mix},
		{"gp3 with both", Storage{Type: "gp3", GiB: 400, IOPS: 12000, MiBps: 500}, Storage{Type: "gp3", GiB: 400, IOPS: 12000, MiBps: 500}, ""},
		{"throughput elsewhere", Storage{Type: "gp2", GiB: 100, MiBps: 500}, Storage{}, mix},
		{"io2, too small", Storage{Type: "io2", GiB: 99, IOPS: 1000}, Storage{}, value},
		{"standard, the smallest", Storage{Type: "standard", GiB: 5}, Storage{Type: "standard", GiB: 5}, ""},
		{"standard, too small", Storage{Type: "standard", GiB: 4}, Storage{}, value},
		{"standard, the largest", Storage{Type: "standard", GiB: 3072}, Storage{Type: "standard", GiB: 3072}, ""},
		{"standard, too large", Storage{Type: "standard", GiB: 3073}, Storage{}, value},
		{"another type", Storage{Type: "aurora", GiB: 10}, Storage{}, value},
	}
	for _, c := range cases {
		got, err := CheckStorage(c.in)
		if !refusedWith(err, c.code) || err == nil && got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
}

func TestTags(t *testing.T) {
	many := make([]Tag, 51)
	for n := range many {
		many[n].Key = strings.Repeat("k", n+1)
	}
	cases := []struct {
		name string
		tags []Tag
		code string
	}{
		{"none", nil, ""},
		{"some", []Tag{{"a", ""}, {"A", "b"}}, ""},
		{"fifty", many[:50], ""},
		{"fifty-one", many, value},
		{"no key", []Tag{{"", "x"}}, value},
		{"a long key", []Tag{{strings.Repeat("k", 129), ""}}, value},
		{"a long value", []Tag{{"k", strings.Repeat("v", 257)}}, value},
		{"twice", []Tag{{"a", "1"}, {"a", "2"}}, value},
		{"of AWS", []Tag{{"AWS:x", ""}}, value},
		{"of RDS", []Tag{{"rds:x", ""}}, value},
		{"a setting", []Tag{{WaitForStandby, "true"}, {Promotable, "false"}}, ""},
		{"a setting's bad value", []Tag{{WaitForStandby, "yes"}}, value},
		{"an unknown setting", []Tag{{"howdah:color", "blue"}}, value},
	}
	for _, c := range cases {
		if err := CheckTags(c.tags); !refusedWith(err, c.code) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMergeAndRemoveTags(t *testing.T) {
	have := []Tag{{"a", "1"}, {"b", "2"}}
	if diff := cmp.Diff([]Tag{{"a", "3"}, {"b", "2"}, {"c", "4"}}, MergeTags(have, []Tag{{"a", "3"}, {"c", "4"}})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Tag{{"b", "2"}}, RemoveTags(have, []string{"a", "none"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Tag{{"a", "1"}, {"b", "2"}}, have); diff != "" {
		t.Errorf("the tags that were given changed: %s", diff)
	}
	if got := Setting([]Tag{{Promotable, "false"}}, Promotable) + Setting(have, Promotable); got != "false" {
		t.Errorf("setting %q", got)
	}
}

func TestScope(t *testing.T) {
	s := Scope{Account: "123456789012", Region: "us-east-1"}
	if got := s.ARN("db", "x"); got != "arn:aws:rds:us-east-1:123456789012:db:x" {
		t.Error(got)
	}
	if s.ZoneName("a") != "us-east-1a" || s.ZoneName("") != "" {
		t.Error(s.ZoneName("a"), s.ZoneName(""))
	}
	for name, want := range map[string]string{"us-east-1a": "a", "us-east-1": "", "eu-west-1a": "", "": ""} {
		if zone, ok := s.ParseZone(name); ok != (want != "") || ok && zone != want {
			t.Errorf("%s: %q, %v", name, zone, ok)
		}
	}
}

func TestDisks(t *testing.T) {
	disk := Storage{Type: "io1", GiB: 100, IOPS: 1000}
	var c Cluster
	c.SetDisk(disk)
	var i Instance
	i.SetDisk(Storage{Type: "gp3", GiB: 400, IOPS: 12000, MiBps: 500})
	if c.Disk() != disk || i.Disk().MiBps != 500 {
		t.Errorf("%+v, %+v", c.Disk(), i.Disk())
	}
	c.Engine = Postgres
	if !c.MultiAZ() {
		t.Error("a cluster of the engine postgres is a Multi-AZ DB cluster")
	}
	i.Source = "db-1"
	if !i.Follows() {
		t.Error("it has a source")
	}
	if i.Promoted = true; i.Follows() {
		t.Error("it was promoted")
	}
}

func TestBackupWindow(t *testing.T) {
	for window, code := range map[string]string{
		"03:00-03:30": "", "23:45-00:15": "", "00:00-23:59": "", "03:00-03:29": value, "03:00-03:00": value, "24:00-24:30": value,
		"3:00-4:00": value, "03:00": value, "": value, "03:60-04:30": value, "03:00-03:30\n": value,
	} {
		if err := CheckBackupWindow(window); !refusedWith(err, code) {
			t.Errorf("%q: %v", window, err)
		}
	}
}

func TestMaintenanceWindow(t *testing.T) {
	for window, want := range map[string]string{
		"Mon:03:00-mon:03:30": "mon:03:00-mon:03:30", "sat:23:45-sun:00:15": "sat:23:45-sun:00:15", "mon:03:00-tue:02:59": "mon:03:00-tue:02:59",
		"mon:03:00-mon:03:29": "", "mon:03:00-tue:03:00": "", "mon:03:00-mon:02:00": "", "03:00-03:30": "", "xyz:03:00-xyz:04:00": "", "": "",
	} {
		got, err := CheckMaintenanceWindow(window)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", window, got, err)
		}
	}
}

func TestWindowsOverlap(t *testing.T) {
	cases := []struct {
		backup, maintenance string
		code                string
	}{
		{"03:00-04:00", "mon:04:00-mon:05:00", ""},
		{"03:00-04:00", "mon:03:59-mon:05:00", value},
		{"03:00-04:00", "mon:02:00-mon:03:00", ""},
		{"03:00-04:00", "mon:02:00-mon:03:01", value},
		{"23:30-00:30", "sun:00:00-sun:01:00", value},
		{"00:00-00:30", "sat:23:30-sun:00:30", value},
		{"00:00-00:30", "sat:23:30-sun:00:00", ""},
		{"01:00-02:00", "mon:00:00-mon:23:00", value},
		{"nonsense", "mon:00:00-mon:23:00", ""}, // told by its own check
	}
	for _, c := range cases {
		if err := CheckWindows(c.backup, c.maintenance); !refusedWith(err, c.code) {
			t.Errorf("%s, %s: %v", c.backup, c.maintenance, err)
		}
	}
}

func TestInMaintenanceWindow(t *testing.T) {
	cases := []struct {
		window, now string
		want        bool
	}{
		{"mon:05:00-mon:06:00", "2026-11-23T05:00:00Z", true},
		{"mon:05:00-mon:06:00", "2026-11-23T05:59:59Z", true},
		{"mon:05:00-mon:06:00", "2026-11-23T06:00:00Z", false},
		{"mon:05:00-mon:06:00", "2026-11-23T04:59:59Z", false},
		{"mon:05:00-mon:06:00", "2026-11-24T05:30:00Z", false},
		{"mon:05:00-mon:06:00", "2026-11-23T07:30:00+02:00", true},
		{"sat:23:30-sun:00:30", "2026-11-22T00:15:00Z", true},
		{"sat:23:30-sun:00:30", "2026-11-21T23:45:00Z", true},
		{"sat:23:30-sun:00:30", "2026-11-22T23:45:00Z", false},
		{"nonsense", "2026-11-22T23:45:00Z", false},
	}
	for _, c := range cases {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := InMaintenanceWindow(c.window, now); got != c.want {
			t.Errorf("%s at %s: %v", c.window, c.now, got)
		}
	}
}

// TestFillWindows: whatever was given, the two are valid and apart, and the same
// for the same resource.
func TestFillWindows(t *testing.T) {
	seen := map[string]bool{}
	for n := range 500 {
		id := "db-" + strings.Repeat("x", n%7) + string(rune('A'+n%26)) + strings.Repeat("y", n%11)
		for _, given := range [][2]string{{"", ""}, {"03:00-04:00", ""}, {"", "mon:02:00-mon:03:00"}, {"", "tue:00:00-tue:12:00"}} {
			backup, maintenance := FillWindows(id, given[0], given[1])
			_, err := CheckMaintenanceWindow(maintenance)
			if err := errors.Join(err, CheckBackupWindow(backup), CheckWindows(backup, maintenance)); err != nil {
				t.Fatalf("%s, %q: %s, %s: %v", id, given, backup, maintenance, err)
			}
			if given[0] != "" && backup != given[0] || given[1] != "" && maintenance != given[1] {
				t.Fatalf("%s: what was given changed: %s, %s", id, backup, maintenance)
			}
			again, also := FillWindows(id, given[0], given[1])
			if again != backup || also != maintenance {
				t.Fatalf("%s: another choice", id)
			}
			seen[maintenance] = true
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d windows for 500 resources", len(seen))
	}
}
