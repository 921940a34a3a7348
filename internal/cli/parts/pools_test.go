package parts

import (
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

func TestPublicPoolFlag(t *testing.T) {
	for _, c := range []struct{ args, want, bad string }{
		{args: "", want: "(nil)"},
		{args: "--public-pool="},
		{args: "--public-pool 203.0.113.0/24", want: "203.0.113.0/24"},
		{args: "--public-pool 203.0.113.77/24", want: "203.0.113.0/24"},
		{args: "--public-pool 203.0.113.0/31", bad: "four addresses"},
		{args: "--public-pool 203.0.113.1", bad: "four addresses"},
		{args: "--public-pool fd00::/64", bad: "four addresses"},
		{args: "--public-pool nonsense", bad: "nonsense"},
	} {
		var public PublicFlag
		cmd := &cobra.Command{}
		public.Add(cmd)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		got, err := public.Asked()
		text := "(nil)"
		if got != nil {
			text = *got
		}
		switch {
		case c.bad != "":
			if err == nil || !errors.Is(err, cli.ErrUsage) || !strings.Contains(err.Error(), c.bad) {
				t.Errorf("%s: %v, want %q", c.args, err, c.bad)
			}
		case err != nil || text != c.want:
			t.Errorf("%s: %s, %v, want %s", c.args, text, err, c.want)
		}
	}
}

func TestPoolsOfAnEdge(t *testing.T) {
	for _, tt := range []struct {
		flags edgeFlags
		yes   string
		no    string
		bad   string
	}{
		{edgeFlags{}, "127.1.2.3", "10.0.0.1", ""},
		{edgeFlags{pool: "10.0.0.0/24"}, "10.0.0.1", "203.0.113.1", ""},
		{edgeFlags{public: "203.0.113.0/24"}, "203.0.113.1", "10.0.0.1", ""},
		{edgeFlags{pool: "10.0.0.0/24", public: "203.0.113.0/24"}, "203.0.113.1", "10.0.1.1", ""},
		{edgeFlags{pool: "10.0.0.0"}, "", "", "--endpoint-pool"},
		{edgeFlags{public: "10.0.0.0"}, "", "", "--public-pool"},
	} {
		cfg, err := tt.flags.endpoints("test", slog.New(slog.DiscardHandler))
		if tt.bad != "" {
			if err == nil || !strings.Contains(err.Error(), tt.bad) {
				t.Errorf("%+v: %v", tt.flags, err)
			}
			continue
		}
		if err != nil || !cfg.Serves(netip.MustParseAddr(tt.yes)) || cfg.Serves(netip.MustParseAddr(tt.no)) {
			t.Errorf("%+v: %v, %v", tt.flags, cfg.Pools, err)
		}
	}
}
