package agent

import (
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/testkit/loopdisk"
)

// TestWhetherFilesShareBlocks: XFS and Btrfs do, ext4 does not; nothing is left behind.
func TestWhetherFilesShareBlocks(t *testing.T) {
	t.Parallel()
	for name, disk := range map[string]struct {
		make func(testing.TB) loopdisk.Disk
		want bool
	}{
		"xfs":   {func(t testing.TB) loopdisk.Disk { return loopdisk.NewXFS(t, "320") }, true},
		"btrfs": {func(t testing.TB) loopdisk.Disk { return loopdisk.NewBtrfs(t, "320") }, true},
		"ext4":  {func(t testing.TB) loopdisk.Disk { return loopdisk.New(t, "40") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(disk.make(t).Dir, shareDir)
			for range 2 {
				if can, err := (&sharing{}).try(dir); err != nil || can != disk.want {
					t.Errorf("they share: %v, %v", can, err)
				}
			}
			if _, err := os.Lstat(dir); !os.IsNotExist(err) {
				t.Errorf("it left %v", err)
			}
		})
	}
}
