package parts

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/identity/home"
)

func TestRelayFlags(t *testing.T) {
	here, err := filepath.Abs("secret")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args string
		want *home.SMTP
		bad  string
	}{
		{args: ""},
		{args: "--smtp=", want: &home.SMTP{}},
		{args: "--smtp mail:25 --smtp-from a@b.c", want: &home.SMTP{Relay: "mail:25", From: "a@b.c"}},
		{
			args: "--smtp mail:25 --smtp-from a@b.c --smtp-user u --smtp-password-file secret",
			want: &home.SMTP{Relay: "mail:25", From: "a@b.c", User: "u", PasswordFile: here},
		},
		{args: "--smtp mail --smtp-from a@b.c", bad: "HOST:PORT"},
		{args: "--smtp :25 --smtp-from a@b.c", bad: "HOST:PORT"},
		{args: "--smtp mail:25", bad: "--smtp-from"},
		{args: "--smtp mail:25 --smtp-from nobody", bad: "nobody"},
		{args: "--smtp-from a@b.c", bad: "need --smtp"},
		{args: "--smtp mail:25 --smtp-from a@b.c --smtp-user u", bad: "need each other"},
	}
	for _, c := range cases {
		var relay RelayFlags
		cmd := &cobra.Command{}
		relay.Add(cmd)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		got, err := relay.SMTP()
		switch {
		case c.bad != "":
			if err == nil || !errors.Is(err, cli.ErrUsage) || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%s: %v, want %q", c.args, err, c.bad)
			}
		case err != nil:
			t.Errorf("%s: %v", c.args, err)
		case (got == nil) != (c.want == nil) || got != nil && *got != *c.want:
			t.Errorf("%s: %+v, want %+v", c.args, got, c.want)
		}
	}
}
