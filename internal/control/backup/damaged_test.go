package backup

import (
	"strings"
	"testing"

	"howdah/internal/model/backup"
	"howdah/internal/model/operation"
)

// TestABackupWithDamagedPages is recorded as such, and nothing is built upon it.
func TestABackupWithDamagedPages(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.yard.set(func() { s.yard.damaged = "pages with wrong checksums\x1b[31m were found" })
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	all := s.records(i.ResourceID)
	if !strings.HasPrefix(all[0].Damaged, "pages with wrong checksums") || strings.Contains(all[0].Damaged, "\x1b") {
		t.Errorf("%+v", all[0])
	}
	if !backup.NeedsFull(all, all[0].Major, all[0].Stop) {
		t.Error("the next one is built upon it")
	}
	s.clean(i.ResourceID)
}
