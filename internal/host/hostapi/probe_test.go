package hostapi

import (
	"crypto/tls"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/repository/place"
	"howdah/internal/repository/store"
	"howdah/internal/testkit/hometest"
)

// probedHost starts an agent that answers probes.
func probedHost(t *testing.T, shows certs.Pair, name string) (address string) {
	t.Helper()
	config, err := shows.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(ProbeHandler(name, slog.New(slog.DiscardHandler)))
	server.Listener = tls.NewListener(server.Listener, config)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A host says whether it sees the place that the control plane sees.
func TestHostsProbeRepositories(t *testing.T) {
	h := hometest.New(t)
	address := probedHost(t, h.Issue(t, "agent:zone-a"), "zone-a")
	top := t.TempDir()
	for _, name := range []string{"same", "other"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) member.Repository {
		return member.Repository{Kind: "directory", Path: filepath.Join(top, name)}
	}
	control, err := place.Open(at("same"))
	if err != nil {
		t.Fatal(err)
	}
	probe, err := place.Begin(t.Context(), control)
	if err != nil {
		t.Fatal(err)
	}
	by := &Prober{Identity: h.Issue(t, "howdah-serve")}
	if why, err := by.Probe(t.Context(), "zone-a", address, at("same"), probe); why != "" || err != nil {
		t.Error(why, err)
	}
	if err := probe.Answered(t.Context(), control, "zone-a"); err != nil {
		t.Error(err)
	}
	marked := at("same")
	marked.ID = "repo-1"
	for name, c := range map[string]struct {
		r    member.Repository
		want string
	}{
		"another place":              {at("other"), place.ErrElsewhere.Error()},
		"a place that is not there":  {at("lost"), "away"},
		"a place without its marker": {marked, store.ErrNoMarker.Error()},
	} {
		if why, err := by.Probe(t.Context(), "zone-a", address, c.r, probe); err != nil || !strings.Contains(why, c.want) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
	}
	for name, caller := range map[string]string{"another host": "agent:zone-b", "an edge": "edge:zone-a"} {
		if why, err := (&Prober{Identity: h.Issue(t, caller)}).Probe(t.Context(), "zone-a", address, at("same"), probe); err == nil {
			t.Errorf("%s may ask: %q", name, why)
		}
	}
	if why, err := by.Probe(t.Context(), "zone-b", address, at("same"), probe); err == nil {
		t.Errorf("a host under another name is asked: %q", why)
	}
}
