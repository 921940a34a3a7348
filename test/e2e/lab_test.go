package e2e

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/lab/result"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
)

// A person makes a drill of one fault, and breaks it off once. The lab makes a database of its own, finds
// out what the fault cost, and leaves nothing behind.
func TestALabDrill(t *testing.T) {
	t.Parallel()
	c := newCLI(t)
	c.does(90*time.Second, "up", "--detach")
	out := filepath.Join(filepath.Dir(c.home), "lab")
	others := []string{"lost-etcd", "partition", "slow-network"}
	if !cuts(t) {
		others = others[:1]
	}
	levels := strings.Join(append(depth.Some(t, 1, others), "kill"), ", ")
	text := strings.Replace(c.does(20*time.Second, "lab", "show", "drill"), "levels: {fault: [kill, freeze, lost-host, lost-etcd]}", "levels: {fault: ["+levels+"]}", 1)
	text = strings.Replace(text, "workload: ledger", "workload: pgbench", 1)
	path := filepath.Join(filepath.Dir(c.home), "drill.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	impossible := strings.Replace(text, "["+levels+"]", "[flood]", 1)
	if err := os.WriteFile(path+".bad", []byte(impossible), 0o600); err != nil {
		t.Fatal(err)
	}
	c.refuses(1, "there is no fault", "lab", "run", path+".bad", "--quick", "--out", out)

	if err := os.WriteFile(path+".bad", []byte(strings.Replace(text, "["+levels+"]", "[kill, clock]", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.refuses(1, "--allow-clock", "lab", "run", path+".bad", "--quick", "--allow-faults", "--out", out)
	c.refuses(1, "give --allow-faults", "lab", "run", path, "--quick", "--out", out)
	if listed := reads[[]struct{ Name string }](c, "db", "list"); len(listed) > 0 {
		t.Errorf("what is refused made %+v", listed)
	}
	c.brokenOff(path, out)
	c.does(240*time.Second, "lab", "run", path, "--quick", "--allow-faults", "--out", out)
	r, err := result.Read(filepath.Join(out, "drill"))
	if err != nil || len(r.Points) != 1+strings.Count(levels, ",") || len(r.Problems) > 0 || r.Target.Kind != "howdah" {
		t.Fatalf("%+v, %v", r, err)
	}
	killed := r.Points[slices.IndexFunc(r.Points, func(p result.Point) bool { return p.Levels["fault"] == "kill" })]
	// Both are medians of seconds, and 0 where the machine is so busy that half of these have no transaction.
	_, before := killed.Figures["load_tps_before"]
	if _, after := killed.Figures["load_tps_after"]; !before || !after || killed.Figures["load_cut"] < 1 {
		t.Errorf("pgbench beside a kill: %v", told(killed.Figures))
	}
	if f := killed.Figures; f["rto_s"] <= 0 || f["rto_s"] > 60 || f["lost_rows"] != 0 || f["acknowledged"] == 0 || f["errors"] == 0 {
		t.Errorf("figures of kill: %v", told(f))
	}
	if len(killed.Faults) != 1 || !strings.Contains(killed.Faults[0].Proof, "is gone") || killed.Faults[0].Healed == "" || len(killed.Faults[0].Postmortems) != 1 || len(killed.Marks) < 3 {
		t.Errorf("the fault: %+v, marks %+v", killed.Faults, killed.Marks)
	}
	partitioned(t, r)
	slowed(t, r)
	if listed := reads[[]struct{ Name string }](c, "db", "list"); len(listed) > 0 {
		t.Errorf("it left %+v", listed)
	}
	if left, err := filepath.Glob(filepath.Join(out, "drill", "*pass*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}
	c.well(30 * time.Second)
}

// told is what is said of figures. How many rows were acknowledged is said only if some are lost: a test that
// fails and says that word is not run again.
func told(figures map[string]float64) map[string]float64 {
	all := maps.Clone(figures)
	if all["lost_rows"] == 0 {
		delete(all, "acknowledged")
	}
	return all
}

// cuts reports whether rules of the kernel can cut a host off here.
func cuts(t *testing.T) bool {
	t.Helper()
	return os.Geteuid() == 0 && exec.CommandContext(t.Context(), "nft", "list", "tables").Run() == nil
}

// partitioned checks what became of a primary whose host was cut off: another one took its place, clients
// saw errors, and nothing that was acknowledged is lost.
func partitioned(t *testing.T, r *result.Result) {
	t.Helper()
	at := slices.IndexFunc(r.Points, func(p result.Point) bool { return p.Levels["fault"] == "partition" })
	if at < 0 {
		t.Log("no host can be cut off here")
		return
	}
	p := r.Points[at]
	t.Logf("a partition: %+v, %v, %q", p.Faults, told(p.Figures), p.Errors)
	if f := p.Figures; f["rto_s"] <= 0 || f["rto_s"] > 60 || f["lost_rows"] != 0 || f["acknowledged"] == 0 || f["errors"] == 0 {
		t.Errorf("figures of a partition: %v", told(f))
	}
	if len(p.Faults) != 1 || !strings.Contains(p.Faults[0].Proof, "the kernel has dropped") || !strings.Contains(p.Faults[0].Healed, "is undone") || len(p.Faults[0].Postmortems) != 1 {
		t.Errorf("the partition: %+v", p.Faults)
	}
	if left, err := exec.CommandContext(t.Context(), "nft", "list", "tables").Output(); err != nil || strings.Contains(string(left), "howdah_lab_") {
		t.Errorf("rules are left: %s, %v", left, err)
	}
}

// slowed checks what became of a primary whose network was slow: whether it kept its role or lost it,
// nothing that was acknowledged is lost.
func slowed(t *testing.T, r *result.Result) {
	t.Helper()
	at := slices.IndexFunc(r.Points, func(p result.Point) bool { return p.Levels["fault"] == "slow-network" })
	if at < 0 {
		return
	}
	p := r.Points[at]
	t.Logf("a slow network: %+v, %v, %q", p.Faults, told(p.Figures), p.Errors)
	if f := p.Figures; f["lost_rows"] != 0 || f["acknowledged"] == 0 {
		t.Errorf("figures of a slow network: %v", told(f))
	}
	if len(p.Faults) != 1 || !strings.Contains(p.Faults[0].Proof, "that were more") || !strings.Contains(p.Faults[0].Healed, "is undone") {
		t.Errorf("the slow network: %+v", p.Faults)
	}
}

// brokenOff kills the lab in the middle of a fault. What stands still then is let go on by the next run.
func (c *cli) brokenOff(path, out string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, "lab", "run", path, "--quick", "--allow-faults", "--out", out, "--home", c.home)
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	testkit.Eventually(c, 2*time.Minute, func() error {
		_, err := os.Stat(filepath.Join(out, "drill", "fault.json"))
		return err
	})
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		c.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		c.Error(err)
	}
	info, err := os.Stat(filepath.Join(out, "drill", "pgpass"))
	if err != nil || info.Mode().Perm() != 0o600 {
		c.Errorf("the password: %v, %v", info, err)
	}
}
