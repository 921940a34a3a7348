package backup

import (
	"strings"
	"testing"
	"time"
)

func TestLostWALEndsWhatCanBeRestored(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	old := Backup{Repository: "main", Label: "A", Kind: Full, Start: now.Add(-2 * time.Hour), Stop: now.Add(-2 * time.Hour), StartLSN: 100}
	d := DrillRecord{Repository: "main", Began: now, Drilled: Drilled{Label: "A", LostWAL: "000000010000000000000005", EndLSN: 500, Reaches: now.Add(-time.Hour), Unrestorable: "x"}}
	all := []Backup{old}
	if at := d.Latest(all, now); !at.Equal(d.Reaches) {
		t.Errorf("behind lost WAL: %s", at)
	}
	if at := d.Latest(all, d.Reaches.Add(-time.Minute)); !at.Equal(d.Reaches.Add(-time.Minute)) {
		t.Errorf("before lost WAL: %s", at)
	}
	if why := d.Heal(all); !strings.Contains(why, d.LostWAL) {
		t.Errorf("%q", why)
	}
	for name, b := range map[string]Backup{
		"of before":          {Repository: "main", Heals: true, StartLSN: 400, Stop: now.Add(time.Minute)},
		"not for that":       {Repository: "main", StartLSN: 600, Stop: now.Add(time.Minute)},
		"another repository": {Repository: "copies", Heals: true, StartLSN: 600, Stop: now.Add(time.Minute)},
	} {
		if !d.Lost(append(all, b)) {
			t.Errorf("%s: it is healed", name)
		}
	}
	heal := Backup{Repository: "main", Label: "B", Kind: Full, Heals: true, Gap: d.Reaches, StartLSN: 600, Start: now.Add(time.Minute), Stop: now.Add(time.Minute)}
	all = append(all, heal)
	later := now.Add(time.Hour)
	if at := d.Latest(all, later); !at.Equal(later) || d.Heal(all) != "" {
		t.Errorf("after it was healed: %s, %q", at, d.Heal(all))
	}
	if _, ok := Base(all, now); ok {
		t.Error("a moment between the two is taken for one that can be restored")
	}
	if b, ok := Base(all, d.Reaches); !ok || b.Label != "A" {
		t.Errorf("before the gap: %+v", b)
	}
	if (DrillRecord{}).Latest(all, later) != later {
		t.Error("without a drill")
	}
}

func TestADamagedBackupIsHealedAtOnce(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	full := Backup{Repository: "main", Label: "A", Kind: Full, Stop: now}
	incr := Backup{Repository: "main", Label: "A_B", Kind: Incremental, Needs: []string{"A"}, Stop: now.Add(time.Hour)}
	d := DrillRecord{Repository: "main", Drilled: Drilled{Label: "A_B", Unrestorable: "damaged", Backups: []string{"A"}}}
	full.Damaged, full.Located = "damaged", true
	if d.Heal([]Backup{full, incr}) == "" {
		t.Error("what is built upon a damaged backup is not healed")
	}
	next := Backup{Repository: "main", Label: "C", Kind: Full, Stop: now.Add(2 * time.Hour)}
	if why := d.Heal([]Backup{full, incr, next}); why != "" {
		t.Errorf("it is healed, and %q", why)
	}
	next.Damaged = "pages with wrong checksums"
	if why := d.Heal([]Backup{full, incr, next}); why != "" {
		t.Errorf("the database itself is damaged, and %q", why)
	}
	d = DrillRecord{Repository: "main", Drilled: Drilled{Label: "A_B", Faults: 1}}
	incr.Damaged, full.Damaged = "an index lacks a row", ""
	if why := d.Heal([]Backup{full, incr}); why != "" {
		t.Errorf("the database itself is damaged, and %q", why)
	}
}

// Where the damage is, nothing else is in doubt.
func TestDamageThatIsLocatedLeavesNoDoubt(t *testing.T) {
	full := Backup{Label: "A", Kind: Full}
	incr := Backup{Label: "A_B", Kind: Incremental, Needs: []string{"A"}, Damaged: "a file is missing"}
	if !InDoubt([]Backup{full, incr}, full) {
		t.Error("nobody knows where the damage is")
	}
	incr.Located = true
	if InDoubt([]Backup{full, incr}, full) {
		t.Error("the damage is in the other one")
	}
}
