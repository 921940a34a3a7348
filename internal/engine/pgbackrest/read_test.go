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
		"no repository":  {"P00   WARN: repo1: [FileOpenError] unable to load info file 'x' or 'x.copy':\nP00  ERROR: [075]: backup set X is not valid\n", 75, false, "cannot be reached"},
		"of 2.45":        {"ERROR: [031]: option 'x' is not valid\n", 31, false, "option 'x' is not valid"},
		"no primary":     {"P00   WARN: unable to check pg2: [CryptoError] unable to verify certificate\nP00  ERROR: [056]: unable to find primary cluster - cannot proceed\n", 56, false, "cannot be reached from its standby"},
		"a full disk": {"P00  ERROR: [042]: unable to get 00000001000000000000000A:\n            repo1: 15-1/0000000100000000/00000001000000000000000A-be6b.zst [FileWriteError] unable to write '/m/x': [28] No space left on device\n", 42, false,
			"No space left on device (unable to get 00000001000000000000000A: repo1: 15-1/"},
		"a full quota":  {"P00  ERROR: [064]: raised from local-1 shim protocol: unable to write '/m/x': [122] Disk quota exceeded\n", 64, false, "Disk quota exceeded"},
		"two lines":     {"P00  ERROR: [042]: unable to get X:\n            repo1: [FileReadError] of some kind\n", 42, false, "unable to get X: repo1: [FileReadError] of some kind"},
		"nothing":       {"", 139, false, "exit code 139"},
		"another line":  {"sh: 1: not found\n", 127, false, "not found"},
		"strange bytes": {"P00  ERROR: [099]: a\x00\x1b[1mb\xff\n", 99, false, "a[1mb"},
		"too much":      {strings.Repeat("ä", 1000), 1, false, "…"},
	} {
		got := Engine{}.Failed([]byte(test.out), test.exit)
		if got.Final != test.final || !strings.Contains(got.Reason, test.want) || len(got.Reason) > 1000 || strings.ContainsAny(got.Reason, "\n\x00\x1b") || !utf8.ValidString(got.Reason) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A file that is not what was written is told from a key that does not fit, and from a repository that
// cannot be reached.
func TestDamageIsSuspected(t *testing.T) {
	const copier = "P00  ERROR: [%]: raised from local-1 shim protocol: "
	line := func(code, words string) string { return strings.Replace(copier, "%", code, 1) + words + "\n" }
	const manifest = "P00  ERROR: [041]: unable to load backup manifest file '/db/L/backup.manifest' or '/db/L/backup.manifest.copy':\n"
	for name, test := range map[string]struct {
		out     string
		suspect bool
	}{
		"zst":                 {line("029", "zst error: [-20] Data corruption detected"), true},
		"lz4":                 {line("029", "lz4 error: [-17] ERROR_frameType_unknown"), true},
		"gz":                  {line("029", "gz error: [-3] data error"), true},
		"cut off":             {line("029", "unexpected eof in compressed data"), true},
		"aes":                 {line("095", "unable to flush"), true},
		"aes header":          {line("095", "cipher header invalid"), true},
		"checksum":            {line("026", "error restoring '/data/base/1/2': actual checksum '0' does not match expected checksum '1'"), true},
		"missing":             {line("055", "unable to open missing file '/db/L/bundle/1' for read"), true},
		"block map":           {line("025", "unexpected block"), true},
		"manifest":            {manifest + "       CryptoError: unable to flush\n", true},
		"manifest, garbled":   {manifest + "       JsonFormatError: invalid JSON value at line 889\n", true},
		"manifest missing":    {manifest + "       FileMissingError: unable to open missing file 'x' for read\n", true},
		"manifest, no server": {manifest + "       HostConnectError: unable to connect to '127.0.0.1:9000': [111] Connection refused\n", false},
		"no server":           {line("049", "unable to connect to '127.0.0.1:9000': [111] Connection refused"), false},
		"broken off":          {line("042", "unexpected EOF reading HTTP content"), false},
		"not HTTP":            {line("029", "HTTP version of response 'x' must be HTTP/1.1 or HTTP/1.0"), false},
		"refused":             {line("039", "HTTP request failed with 503 (Service Unavailable)"), false},
		"silent":              {line("042", "timeout after 20000ms waiting for read from '127.0.0.1:9000'"), false},
		"the key":             {"P00   WARN: repo1: [CryptoError] unable to load info file\nP00  ERROR: [075]: no backup set found to restore\n", false},
		"the disk":            {line("064", "unable to write '/data/x': [28] No space left on device"), false},
	} {
		if got := (Engine{}).Failed([]byte(test.out), 1); got.Suspect != test.suspect || got.Suspect && got.Final || got.Lost != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	got := Engine{}.Failed([]byte("WAL file 000000010000000000000005 is damaged in the repository: zst error: [-20] Data.\n"), 126)
	if got.Lost != "000000010000000000000005" || !got.Final {
		t.Errorf("%+v", got)
	}
}

func TestVerifyTellsInWords(t *testing.T) {
	const begin, end = "P00   INFO: verify command begin 2.55.1\n", "P00   INFO: verify command end: completed successfully\n"
	const bad = "P00   INFO: stanza: x\n            status: error\n"
	for name, test := range map[string]struct {
		said string
		want []backup.Fault
	}{
		"nothing": {begin + end, nil},
		"well":    {begin + "P00   INFO: stanza: x\n            status: ok\n" + end, nil},
		"files": {
			begin + "P01   INFO: invalid checksum '20261124-160054F/bundle/1'\nP02   INFO: file missing '20261124-160054F_20261124-160447I/pg_data/base/1/2.zst'\n" + bad,
			[]backup.Fault{
				{File: "20261124-160054F/bundle/1", Backup: "20261124-160054F", What: "is not what was written"},
				{File: "20261124-160054F_20261124-160447I/pg_data/base/1/2.zst", Backup: "20261124-160054F_20261124-160447I", What: "is missing"},
			},
		},
		"WAL": {
			begin + "P01   WARN: file missing '15-1/0000000100000000/000000010000000000000003-" + strings.Repeat("a", 40) + ".zst'\n",
			[]backup.Fault{{File: "15-1/0000000100000000/000000010000000000000003-" + strings.Repeat("a", 40) + ".zst", WAL: "000000010000000000000003", What: "is missing"}},
		},
		"cannot be opened": {
			begin + "P01   INFO: invalid result 20261124-160054F/bundle/1: [29] raised from local-1 shim protocol: zst error\n" + bad,
			[]backup.Fault{{File: "20261124-160054F/bundle/1", Backup: "20261124-160054F", What: "cannot be read (raised from local-1 shim protocol: zst error)"}},
		},
		"a manifest": {
			begin + "P00 DETAIL: invalid checksum, actual 'a' but expected 'b' <REPO:BACKUP>/20261124-160054F/backup.manifest\n" + bad +
				"              backup: 20261124-160054F, status: invalid, total files checked: 0, total valid files: 0\n",
			[]backup.Fault{{File: "20261124-160054F/backup.manifest", Backup: "20261124-160054F", What: "is missing or damaged, and its copy, too"}},
		},
		"a garbled manifest": {
			begin + "P00 DETAIL: invalid JSON value at line 889 'x={': expected data\n" + bad +
				"              backup: 20261124-160054F, status: invalid, total files checked: 0, total valid files: 0\n",
			[]backup.Fault{{File: "20261124-160054F/backup.manifest", Backup: "20261124-160054F", What: "is missing or damaged, and its copy, too"}},
		},
		"no more": {begin + bad, []backup.Fault{{What: "is missing, or is not what was written"}}},
	} {
		if got, err := (Engine{}).Verified([]byte(test.said), 0); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for name, said := range map[string]string{
		"no server":   begin + "P01   INFO: invalid result 20261124-160054F/bundle/1: [49] raised from local-1 shim protocol: unable to connect\n" + bad,
		"no manifest": begin + "P00 DETAIL: unable to connect to '127.0.0.1:9000'\n" + bad + "  backup: 20261124-160054F, status: invalid, total files checked: 0, total valid files: 0\n",
		"no list":     begin + bad + "              No usable backup.info file\n",
	} {
		if got, err := (Engine{}).Verified([]byte(said), 0); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got, err := (Engine{}).Verified([]byte("P00  ERROR: [049]: unable to connect\n"), 49); err == nil {
		t.Errorf("%+v", got)
	}
}
