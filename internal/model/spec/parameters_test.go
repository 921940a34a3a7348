package spec

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/param"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestParameters holds the settings of some sizes against a text that people read.
func TestParameters(t *testing.T) {
	const gib = 1 << 30
	var b strings.Builder
	for _, size := range []struct{ memory, storage int64 }{{613 << 20, 5 * gib}, {gib, 20 * gib}, {8 * gib, 100 * gib}, {64 * gib, 1000 * gib}, {768 * gib, 65536 * gib}} {
		fmt.Fprintf(&b, "memory %d MiB, storage %d GiB\n", size.memory>>20, size.storage/gib)
		all := ClusterParameters(size.memory, size.storage)
		changing := MemberParameters(size.memory)
		for _, name := range []string{"max_connections", "max_slot_wal_keep_size"} {
			changing[name] = all[name]
		}
		for _, name := range slices.Sorted(maps.Keys(changing)) {
			fmt.Fprintf(&b, "  %s = %s\n", name, changing[name])
		}
	}
	b.WriteString("of every size\n")
	fixed := ClusterParameters(gib, gib)
	delete(fixed, "max_connections")
	delete(fixed, "max_slot_wal_keep_size")
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		fmt.Fprintf(&b, "  %s = %s\n", name, fixed[name])
	}
	golden := filepath.Join("testdata", "parameters.txt")
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

// TestSharedSettingsDoNotShrink: more memory never makes a setting smaller that a
// standby must have as high as its primary.
func TestSharedSettingsDoNotShrink(t *testing.T) {
	var last int64
	for _, c := range Classes() {
		last = max(last, c.Memory)
	}
	before := int64(256 << 20)
	for memory := before; memory <= last; memory += memory / 3 {
		var small, large int
		fmt.Sscan(ClusterParameters(before, 0)["max_connections"], &small)
		fmt.Sscan(ClusterParameters(memory, 0)["max_connections"], &large)
		if large < small || large > 5000 || small < 30 {
			t.Errorf("max_connections of %d and %d bytes: %d, %d", before, memory, small, large)
		}
		if SharedDiffer(before, memory) != (small != large) {
			t.Errorf("SharedDiffer(%d, %d)", before, memory)
		}
		before = memory
	}
}

// TestFormulasSayWhatIsSet: what parameter groups show of the defaults is what
// instances get.
func TestFormulasSayWhatIsSet(t *testing.T) {
	units := map[string]int64{"shared_buffers": 8, "effective_cache_size": 8, "maintenance_work_mem": 1, "autovacuum_max_workers": 1, "max_connections": 1}
	for _, class := range Classes() {
		all := MemberParameters(class.Memory)
		all["max_connections"] = ClusterParameters(class.Memory, 0)["max_connections"]
		for name, formula := range DefaultFormulas() {
			n, err := param.Evaluate(formula, param.Machine{Memory: class.Memory})
			if err != nil {
				t.Fatal(err)
			}
			var set int64
			fmt.Sscan(all[name], &set) // in kB where it has a unit
			if set/units[name] != n {
				t.Errorf("%s of %s: %s gives %d, and %s is set", name, class.Name, formula, n, all[name])
			}
		}
	}
}
