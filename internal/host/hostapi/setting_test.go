package hostapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"howdah/internal/host/logfile"
	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

var errNoSuchMajor = errors.New("no such major version")

// settingHost starts an agent whose PostgreSQL 16 takes any value except "bad".
func settingHost(t *testing.T, shows certs.Pair) (address string) {
	t.Helper()
	config, err := shows.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	server := httptest.NewUnstartedServer(AgentHandler(
		LogHandler(func(string) (logfile.Dir, bool) { return logfile.Dir{}, false }, quiet),
		SettingHandler(func(_ context.Context, in SettingRequest) (string, error) {
			switch {
			case in.Major != 16:
				return "", errNoSuchMajor
			case in.Value == "bad":
				return "PostgreSQL refuses it", nil
			}
			return "", nil
		}, quiet), ProbeHandler("zone-a", quiet), http.NotFoundHandler()))
	server.Listener = tls.NewListener(server.Listener, config)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestSettingsOnAnotherHost(t *testing.T) {
	h := hometest.New(t)
	address := settingHost(t, h.Issue(t, "agent:zone-a"))
	s := &SettingChecker{Identity: h.Issue(t, "howdah-serve")}
	good := SettingRequest{Major: 16, Name: "search_path", Value: "a, b"}
	if why, err := s.Check(t.Context(), "zone-a", address, good); why != "" || err != nil {
		t.Fatal(why, err)
	}
	bad := good
	bad.Value = "bad"
	if why, err := s.Check(t.Context(), "zone-a", address, bad); why != "PostgreSQL refuses it" || err != nil {
		t.Fatal(why, err)
	}
	long := good
	long.Value = strings.Repeat("é", 65535/2)
	if why, err := s.Check(t.Context(), "zone-a", address, long); why != "" || err != nil {
		t.Fatal(why, err)
	}
	for name, c := range map[string]struct {
		by            certs.Pair
		host, address string
		in            SettingRequest
	}{
		"a version that is not there": {h.Issue(t, "howdah-serve"), "zone-a", address, SettingRequest{Major: 17, Name: "search_path"}},
		"a name with an option":       {h.Issue(t, "howdah-serve"), "zone-a", address, SettingRequest{Major: 16, Name: "a=b"}},
		"no name":                     {h.Issue(t, "howdah-serve"), "zone-a", address, SettingRequest{Major: 16}},
		"another host":                {h.Issue(t, "howdah-serve"), "zone-b", address, good},
		"nobody's address":            {h.Issue(t, "howdah-serve"), "zone-a", testkit.FreeAddr(t), good},
		"no address":                  {h.Issue(t, "howdah-serve"), "zone-a", "", good},
		"another agent asks":          {h.Issue(t, "agent:zone-b"), "zone-a", address, good},
		"a member asks":               {h.Issue(t, "member:db-1.m1"), "zone-a", address, good},
	} {
		s := &SettingChecker{Identity: c.by}
		if why, err := s.Check(t.Context(), c.host, c.address, c.in); err == nil {
			t.Errorf("%s: it was checked: %q", name, why)
		}
	}
	// An agent of an older version has logs only.
	old := logHost(t, h, h.Issue(t, "agent:zone-a"))
	if _, err := s.Check(t.Context(), "zone-a", old, good); err == nil {
		t.Error("an old agent checks settings")
	}
}
