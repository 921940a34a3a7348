package soak

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/state"
	"howdah/internal/testkit"
	"howdah/test/soak/model"
)

const leftID = "db-LEFTOVER7EXAMPLE"

func TestFilesThatAreLeft(t *testing.T) {
	dir := t.TempDir()
	if err := noFiles(dir, leftID); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	inside := filepath.Join(dir, "host-a", "members", "other.m1", "data", strings.ToLower(leftID))
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := noFiles(dir, leftID); err != nil {
		t.Errorf("what another database's PostgreSQL has is its own: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "host-b", strings.ToLower(leftID)+".m2.member"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := noFiles(dir, leftID); err == nil || !strings.Contains(err.Error(), "host-b") {
		t.Errorf("a directory is left, found: %v", err)
	}
}

func TestAProcessThatIsLeft(t *testing.T) {
	if err := noProcess(leftID); err != nil {
		t.Errorf("nobody: %v", err)
	}
	cmd := exec.Command("sh", "-c", "echo; read line", filepath.Join("members", leftID+".m1"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	testkit.Start(t, cmd)
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := noProcess(leftID); err == nil {
		t.Error("a process with the database in its arguments is not found")
	}
	in.Close()
	_ = cmd.Wait() // it ends with its input
	if err := noProcess(leftID); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

func TestKeysThatStay(t *testing.T) {
	for key, want := range map[string]bool{
		state.Failover(leftID, "1"): true, state.Layout(leftID): false, state.Assign("zone-a", leftID+".m1"): false,
		state.Lead(leftID): false, "/service/" + leftID + "/config": false, state.Event("1", "r", "1"): true,
	} {
		if got := stays(key); got != want {
			t.Errorf("%s stays: %t, want %t", key, got, want)
		}
	}
}

func TestKindsOfOutages(t *testing.T) {
	for text, want := range map[string]string{
		"failover orders": "failover", "kill-part serve 3": "kill-part serve", "freeze-host standby orders 9": "freeze-host standby",
		"part primary orders control+peers 9": "part primary", "convert orders single": "convert",
	} {
		words := strings.Fields(text)
		if got := kindOf(model.Step{Verb: words[0], Words: words[1:]}); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestSidesOfANetwork(t *testing.T) {
	var got []string
	for _, side := range model.Sides[1:] {
		for _, s := range sides(side) {
			got = append(got, s.String())
		}
	}
	want := "control plane, clients, peers, control plane, peers, control plane, clients, what comes from control plane, what goes to control plane, what comes from peers, what goes to peers"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s", strings.Join(got, ", "))
	}
}
