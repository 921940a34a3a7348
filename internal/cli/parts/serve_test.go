package parts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/cli"
	"howdah/internal/control/serve"
	"howdah/internal/identity/home"
)

func TestAControlPlaneThatCannotJoin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(home.NewToken(strings.Repeat("0", 64))), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("not one"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ address, join, file, want string }{
		{"", "https://127.0.0.1:1", file, "--address"},
		{"db1", "https://127.0.0.1:1", file, "--address"},
		{"127.0.0.1", "https://127.0.0.1:1", "", "--token-file"},
		{"127.0.0.1", "https://127.0.0.1:1", other, "not a join token"},
		{"127.0.0.1", "127.0.0.1:1", file, "--join needs the URL"},
	} {
		dir := filepath.Join(t.TempDir(), "home")
		cfg := serve.Config{Name: "s2", Address: c.address, Log: cli.NewLog("test")}
		_, _, err := joinHome(t.Context(), dir, cfg, "", c.join, c.file)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%+v left a home: %v", c, err)
		}
	}
}

func TestReadToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(" hj1.x \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := readToken(path); err != nil || token != "hj1.x" {
		t.Errorf("%q, %v", token, err)
	}
	for _, none := range []string{"", path + ".none"} {
		if _, err := readToken(none); err == nil {
			t.Errorf("%q is a token file", none)
		}
	}
}
