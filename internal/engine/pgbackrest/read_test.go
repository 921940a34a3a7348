package pgbackrest

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
)

func TestListIsRead(t *testing.T) {
	out, err := os.ReadFile("testdata/info.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := Engine{}.ParseList(out)
	if err != nil {
		t.Fatal(err)
	}
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }
	want := backup.Listing{
		FirstWAL: "000000010000000000000001", LastWAL: "000000020000000000000015",
		Backups: []backup.Info{
			{
				Label: "20261124-160054F", Kind: backupmodel.Full, Operation: "op-1", Major: 15, SystemID: "7711768629229081380", Start: at(1795536054), Stop: at(1795536056),
				StartLSN: 0x3000028, StopLSN: 0x4000050, Timeline: 1, Size: 23213923, Stored: 3028312,
			},
			{
				Label: "20261124-160054F_20261124-160447I", Kind: backupmodel.Incremental, Needs: []string{"20261124-160054F", "20261124-160054F_20261124-160100I"},
				Major: 17, SystemID: "7711768629229081381", Start: at(1795536287), Stop: at(1795536289),
				StartLSN: 0x8000028, StopLSN: 0x9000050, Timeline: 26, Size: 27000000, Stored: 900000, Damaged: true,
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestListOfNothingIsEmpty(t *testing.T) {
	for _, out := range []string{
		`[]`,
		`[{"backup":[],"db":[],"name":"db1","status":{"code":1,"message":"missing stanza path"}}]`,
		`[{"archive":[{"database":{"id":1,"repo-key":1},"id":"15-1","max":null,"min":null}],"backup":[],"db":[{"id":1,"system-id":7711768629229081380,"version":"15"}],"name":"db1","status":{"code":2,"message":"no valid backups"}}]`,
	} {
		if got, err := (Engine{}).ParseList([]byte(out)); err != nil || !reflect.DeepEqual(got, backup.Listing{}) {
			t.Errorf("%s: %+v, %v", out, got, err)
		}
	}
	for _, out := range []string{``, `{`, `[{"status":{"code":99,"message":"other"}}]`} {
		if got, err := (Engine{}).ParseList([]byte(out)); err == nil {
			t.Errorf("%s: %+v", out, got)
		}
	}
}

func TestWhatABackupNeedsIsAllOfIt(t *testing.T) {
	known := map[string][]string{"B": {"A"}}
	if got := (set{Prior: "B", Reference: []string{"A"}}).needs(known); !reflect.DeepEqual(got, []string{"A", "B"}) {
		t.Errorf("%v", got)
	}
	known["C"] = []string{"A", "B"}
	if got := (set{Prior: "C", Reference: []string{"A", "C"}}).needs(known); !reflect.DeepEqual(got, []string{"A", "B", "C"}) {
		t.Errorf("%v", got)
	}
	if got := (set{}).needs(known); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func FuzzList(f *testing.F) {
	out, err := os.ReadFile("testdata/info.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(out)
	f.Fuzz(func(_ *testing.T, out []byte) {
		_, _ = Engine{}.ParseList(out) // it must not panic
	})
}

func TestProgressIsRead(t *testing.T) {
	for line, want := range map[string]int64{
		"P01 DETAIL: backup file /data/base/1/2608 (bundle 1/0, 456KB, 10.22%) checksum 0a": 1022,
		"P02 DETAIL: backup file /data/base/1/16384 (1GB, 99.9%) checksum 0a":               9990,
		"P01 DETAIL: restore file /data/base/1/2608 (bundle 1/0, 456KB, 100.00%)":           10000,
		"P01 DETAIL: restore file /data/base/1/a (b) (0B, 7%)":                              700,
	} {
		if got, ok := (Engine{}).Progress(line); !ok || got.Done != want || got.Of != 10000 {
			t.Errorf("%s: %+v, %t", line, got, ok)
		}
	}
	for _, line := range []string{"", "P00   INFO: full backup size = 22.1MB, file total = 965", "P01 DETAIL: backup file /x (1GB) checksum"} {
		if got, ok := (Engine{}).Progress(line); ok {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestFailuresAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		out   string
		exit  int
		final bool
		want  string
	}{
		"a lock":         {"P00  ERROR: [050]: unable to acquire lock on file 'x': Resource temporarily unavailable\n         HINT: is another process running?\n", 50, false, "another backup"},
		"the key":        {"P00   WARN: repo1: [FormatError] unable\nFormatError: key/value found outside of section at line 1: \xff\x01\nP00  ERROR: [075]: no backup set found to restore\n", 75, true, "cannot be read with this key"},
		"no such backup": {"P00  ERROR: [075]: backup set X is not valid\n", 75, true, "backup set X"},
		"of 2.45":        {"ERROR: [031]: option 'x' is not valid\n", 31, false, "option 'x' is not valid"},
		"no primary":     {"P00   WARN: unable to check pg2: [CryptoError] unable to verify certificate\nP00  ERROR: [056]: unable to find primary cluster - cannot proceed\n", 56, false, "cannot be reached from its standby"},
		"nothing":        {"", 139, false, "exit code 139"},
		"another line":   {"sh: 1: not found\n", 127, false, "not found"},
		"strange bytes":  {"P00  ERROR: [099]: a\x00\x1b[1mb\xff\n", 99, false, "a[1mb"},
		"too much":       {strings.Repeat("ä", 1000), 1, false, "…"},
	} {
		got := Engine{}.Failed([]byte(test.out), test.exit)
		if got.Final != test.final || !strings.Contains(got.Reason, test.want) || len(got.Reason) > 1000 || strings.ContainsAny(got.Reason, "\n\x00\x1b") || !utf8.ValidString(got.Reason) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
