package homes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
)

func TestCredentialIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("AKID:from-a-file:123456789012\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		arguments, want string
		visible         bool
	}{
		{"", "", false},
		{"--credential AKID:argument", "argument", true},
		{"--credential-stdin", "from-stdin", false},
		{"--credential-file " + file, "from-a-file", false},
	} {
		var f credentialFlags
		cmd := &cobra.Command{}
		f.add(cmd)
		if err := cmd.ParseFlags(strings.Fields(test.arguments)); err != nil {
			t.Fatal(err)
		}
		o := &cli.Options{Screen: &screen.Screen{Stdin: strings.NewReader("AKID:from-stdin\r\n")}}
		got, err := f.read(o, cmd)
		if err != nil {
			t.Errorf("%s: %v", test.arguments, err)
			continue
		}
		if got == nil {
			got = &home.Credential{}
		}
		if got.Secret != test.want || f.inArguments() != test.visible {
			t.Errorf("%s: %+v, in the arguments %v", test.arguments, got, f.inArguments())
		}
	}
}

func TestWithoutCredential(t *testing.T) {
	for given, want := range map[string]string{
		"up --detach":                           "up --detach",
		"up --credential A:b --detach":          "up --detach",
		"--home /x up --credential=A:b":         "--home /x up",
		"up --credential-file x --credential A": "up --credential-file x",
		"up --credential":                       "up",
		"x -- --credential A:b":                 "x -- --credential A:b",
	} {
		if got := strings.Join(withoutCredential(strings.Fields(given)), " "); got != want {
			t.Errorf("%s: %q, want %q", given, got, want)
		}
	}
}
