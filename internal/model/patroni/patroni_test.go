package patroni

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestClusterDocument(t *testing.T) {
	cluster := Cluster{
		Sync: SyncQuorum, WaitForStandby: true, Parameters: map[string]string{"max_connections": "112"},
		Slots: []string{"db_child"}, Upstream: &Upstream{Host: "127.93.8.1", Port: 5432, Slot: "db_me", Origin: &Address{"127.93.8.2", 5433}},
	}
	text, err := cluster.Document()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "cluster.json", append(text, '\n'))
}

func TestParseSync(t *testing.T) {
	cases := []struct {
		name, in string
		want     Sync
		cuts     int
	}{
		{"no key", "", Sync{}, 0},
		{"alone", `{"leader":"m1","sync_standby":null}`, Sync{Leader: "m1"}, 0},
		{"one standby", `{"leader":"m1","sync_standby":"m2"}`, Sync{Leader: "m1", Standbys: []string{"m2"}}, 1},
		{
			"any one of two", `{"leader":"m1","quorum":1,"sync_standby":"m2,m3"}`,
			Sync{Leader: "m1", Standbys: []string{"m2", "m3"}, Quorum: 1},
			2,
		},
		{
			"any one of three", `{"leader":"m1","quorum":2,"sync_standby":"m2,m3,m4"}`,
			Sync{Leader: "m1", Standbys: []string{"m2", "m3", "m4"}, Quorum: 2},
			3,
		},
	}
	for _, c := range cases {
		got, err := ParseSync([]byte(c.in))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if got.CutsNeeded() != c.cuts {
			t.Errorf("%s: %d cuts needed, want %d", c.name, got.CutsNeeded(), c.cuts)
		}
	}
	if _, err := ParseSync([]byte("{")); err == nil {
		t.Error("half a value was read")
	}
}

// TestParseMember: a value as Patroni 4.1 writes it.
func TestParseMember(t *testing.T) {
	got, err := ParseMember([]byte(`{"conn_url":"postgres://127.9.1.1:15432/postgres","api_url":"https://127.9.1.1:25432/patroni","state":"running",` +
		`"role":"replica","version":"4.1.5","tags":{"generation":3},"xlog_location":50331648,"replication_state":"streaming","timeline":2,` +
		`"pending_restart":true,"pending_restart_reason":{"max_connections":{"old_value":"120","new_value":"140"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Difference{"max_connections": {Old: "120", New: "140"}}
	if diff := cmp.Diff(want, got.Differences); diff != "" || !got.PendingRestart || got.Generation() != 3 || got.Role != "replica" {
		t.Errorf("%+v %s", got, diff)
	}
	if _, err := ParseMember([]byte("{")); err == nil {
		t.Error("nonsense was read")
	}
}

// TestNames: a member is found, and read, by whichever of its names Patroni knows it.
func TestNames(t *testing.T) {
	own := OwnName("db-X", "m12")
	if own != "db-X.m12" || MemberName(own) != "m12" || MemberName("m12") != "m12" || MemberName("") != "" {
		t.Errorf("own name %q, of the member %q", own, MemberName(own))
	}
	s, err := ParseSync([]byte(`{"leader":"db-X.m1","sync_standby":"db-X.m2,m3","quorum":1}`))
	if err != nil || s.Leader != "m1" || !slices.Equal(s.Standbys, []string{"m2", "m3"}) {
		t.Errorf("sync %+v, %v", s, err)
	}
	keys := map[string]string{
		MemberKey("db-X", "m1"): `{"role":"replica"}`, MemberKey("db-X", "db-X.m2"): `{"role":"primary"}`,
		MemberKey("db-X", "m2"): `{"role":"replica"}`, MemberKey("db-X", "m3"): `{`,
	}
	raw := func(key string) ([]byte, int64, bool) { v, ok := keys[key]; return []byte(v), 1, ok }
	for name, role := range map[string]string{"m1": "replica", "m2": "primary", "m3": "", "m4": ""} {
		if m, ok := FindMember(raw, "db-X", name); m.Role != role || ok != (role != "") {
			t.Errorf("%s: %+v, %v", name, m, ok)
		}
	}
}

func TestSplitKey(t *testing.T) {
	scope, rest, ok := SplitKey(MemberKey("db-X", "m1"))
	if scope != "db-X" || rest != "members/m1" || !ok {
		t.Errorf("%q %q %v", scope, rest, ok)
	}
	if _, _, ok := SplitKey("/howdah/x"); ok {
		t.Error("a foreign key was split")
	}
}

// TestLogicalSlotsAreLeftAlone: Patroni drops slots that it does not know.
func TestLogicalSlotsAreLeftAlone(t *testing.T) {
	with, err := Cluster{LogicalSlots: true}.Document()
	if err != nil || !strings.Contains(string(with), `"ignore_slots":[{"type":"logical"}]`) {
		t.Errorf("%s, %v", with, err)
	}
	if without, err := (Cluster{}).Document(); err != nil || strings.Contains(string(without), "ignore_slots") {
		t.Errorf("%s, %v", without, err)
	}
}

func TestWaits(t *testing.T) {
	added := map[string]Difference{"shared_preload_libraries": {Old: "pg_stat_statements,howdah", New: "pg_stat_statements,howdah,ccm"}}
	users := map[string]Difference{"shared_preload_libraries": {Old: "pg_stat_statements,howdah", New: "pg_stat_statements,howdah,auto_explain,ccm"}}
	both := map[string]Difference{"shared_preload_libraries": added["shared_preload_libraries"], "max_connections": {Old: "100", New: "75"}}
	for _, tt := range []struct {
		name string
		m    MemberState
		want bool
	}{
		{"nothing", MemberState{}, false},
		{"a setting", MemberState{PendingRestart: true, Differences: map[string]Difference{"max_connections": {Old: "100", New: "75"}}}, true},
		{"an older Patroni says no reason", MemberState{PendingRestart: true}, true},
		{"the platform's new library", MemberState{PendingRestart: true, Differences: added}, false},
		{"a library of the user's beside it", MemberState{PendingRestart: true, Differences: users}, true},
		{"a setting beside it", MemberState{PendingRestart: true, Differences: both}, true},
	} {
		if got := tt.m.Waits(); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
		if got, want := tt.m.Unloaded(), strings.Contains(tt.name, "library") || tt.name == "a setting beside it"; got != want {
			t.Errorf("%s: a restart loads the library: %t", tt.name, got)
		}
	}
}
