package homes

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/cli"
	"howdah/internal/cli/parts"
	"howdah/internal/identity/home"
)

func TestParseStorage(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may ask for it")
	}
	for text, want := range map[string]storage{
		"": {}, "/x/disk.img:20G": {"/x/disk.img", 20 << 30}, "/x/a:b:1T": {"/x/a:b", 1 << 40}, "/x/d:1024M": {"/x/d", 1 << 30},
	} {
		if got, err := parseStorage(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"disk.img", "disk.img:", ":20G", "disk.img:20", "disk.img:20K", "disk.img:-1G", "disk.img:100M", "disk.img:0G", "disk.img:9999999G", "disk.img:1.5G"} {
		if got, err := parseStorage(text); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := parseStorage("disk.img:1G"); err != nil || got.file != filepath.Join(here, "disk.img") {
		t.Errorf("%+v, %v", got, err)
	}
}

// A home whose file system is not there starts nothing: it would take its members for gone.
func TestAHomeWhoseStorageIsNotMounted(t *testing.T) {
	h := &home.Home{Dir: t.TempDir()}
	h.DataRoot = filepath.Join(h.Dir, "hosts")
	for _, do := range []func() error{func() error { return parts.CheckMounted(h) }, func() error { return mountStorage(t.Context(), h) }, func() error { return unmountStorage(t.Context(), h) }, func() error { return removeStorage(h) }} {
		if err := do(); err != nil {
			t.Errorf("without storage of its own: %v", err)
		}
	}
	h.Storage = filepath.Join(h.Dir, "disk.img")
	if err := parts.CheckMounted(h); err == nil {
		t.Error("it starts without its databases")
	}
	if err := mountStorage(t.Context(), h); err == nil {
		t.Error("a file that is gone is mounted")
	}
	if err := errors.Join(unmountStorage(t.Context(), h), removeStorage(h)); err != nil {
		t.Error(err)
	}
}
