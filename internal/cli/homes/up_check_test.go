package homes

import (
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/identity/home"
)

func TestCheckPublicPool(t *testing.T) {
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{PublicPool: new("203.0.113.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	own := h.Network + ".9.0/24"
	beside := h.Network + ".16.0/24"
	for asked, bad := range map[string]string{"203.0.113.0/24": "", "": "", beside: "", own: "home's own pool", "127.0.0.0/8": "home's own pool"} {
		err := checkPublicPool(h, &asked)
		if (err == nil) != (bad == "") || err != nil && !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v, want %q", asked, err, bad)
		}
	}
	if err := checkPublicPool(h, nil); err != nil {
		t.Error(err)
	}
	lock, err := h.Lock("up")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if err := checkPublicPool(h, &beside); err == nil || !strings.Contains(err.Error(), "up already") {
		t.Errorf("another pool while it is up: %v", err)
	}
	if err := checkPublicPool(h, new("203.0.113.0/24")); err != nil {
		t.Errorf("the same pool while it is up: %v", err)
	}
}

func TestCheckUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	if _, err := home.Ensure(dir, home.Options{Listen: "127.0.0.1:7443"}); err != nil {
		t.Fatal(err)
	}
	holdElsewhere(t, filepath.Join(dir, "run", "up.lock"), false)
	fresh := filepath.Join(t.TempDir(), "fresh")
	for _, c := range []struct {
		name, dir string
		options   home.Options
		want      string // in the error; "": none
	}{
		{"a new home", fresh, home.Options{Listen: "0.0.0.0:7443", Region: "eu-central-1", Disposable: true}, ""},
		{"GovCloud", fresh, home.Options{Region: "us-gov-west-1"}, ""},
		{"the same again", dir, home.Options{Listen: "127.0.0.1:7443", Region: home.DefaultRegion}, ""},
		{"no port", fresh, home.Options{Listen: "127.0.0.1"}, "--listen"},
		{"port 0", fresh, home.Options{Listen: "127.0.0.1:0"}, "--listen"},
		{"port 70000", fresh, home.Options{Listen: "127.0.0.1:70000"}, "--listen"},
		{"a name", fresh, home.Options{Listen: "here:7443"}, "--listen"},
		{"no region", fresh, home.Options{Region: "Oregon"}, "--region"},
		{"another region", dir, home.Options{Region: "eu-central-1"}, "stays there"},
		{"disposable later", dir, home.Options{Disposable: true}, "without --disposable"},
		{"elsewhere while it is up", dir, home.Options{Listen: "127.0.0.1:7444"}, "is up already"},
	} {
		err := checkUp(c.dir, c.options)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
