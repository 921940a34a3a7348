package parts

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

func TestZoneFlag(t *testing.T) {
	for _, c := range []struct{ args, want, bad, handed string }{
		{args: "", want: "(nil)"},
		{args: "--dns-zone=", handed: "--dns-zone "},
		{args: "--dns-zone howdah.internal", want: "howdah.internal", handed: "--dns-zone howdah.internal"},
		{args: "--dns-zone Howdah.Internal.", want: "howdah.internal", handed: "--dns-zone Howdah.Internal."},
		{args: "--dns-zone example.com", bad: "public name"},
		{args: "--dns-zone db.local", bad: "multicast"},
		{args: "--dns-zone internal", bad: "howdah.internal"},
		{args: "--dns-zone a_b.internal", bad: "a_b.internal"},
	} {
		var z ZoneFlag
		cmd := &cobra.Command{}
		z.Add(cmd)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		got, err := z.Asked()
		text := "(nil)"
		if got != nil {
			text = string(*got)
		}
		switch {
		case c.bad != "":
			if err == nil || !errors.Is(err, cli.ErrUsage) || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%s: %v, want %q", c.args, err, c.bad)
			}
		case err != nil || text != c.want || strings.Join(z.Args(), " ") != c.handed:
			t.Errorf("%s: %s, %v, handed on as %q", c.args, text, err, z.Args())
		}
	}
}

func TestListenFlag(t *testing.T) {
	standard := netip.MustParseAddrPort("127.9.0.53:53")
	for text, want := range map[string]string{
		"": "127.9.0.53:53", "127.0.0.1:5300": "127.0.0.1:5300", "0.0.0.0:53": "0.0.0.0:53", "[::1]:53": "[::1]:53",
		"127.0.0.1": "", "127.0.0.1:0": "", "localhost:53": "", "224.0.0.1:53": "", ":53": "",
	} {
		l := ListenFlag{text}
		got, err := l.At(standard)
		if want == "" {
			if !errors.Is(err, cli.ErrUsage) {
				t.Errorf("%q: %s, %v", text, got, err)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("%q: %s, %v", text, got, err)
		}
		if handed := l.Args(); text == "" != (len(handed) == 0) || text != "" && !slices.Equal(handed, []string{"--dns-listen", text}) {
			t.Errorf("%q is handed on as %q", text, handed)
		}
	}
}
