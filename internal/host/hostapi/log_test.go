package hostapi

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"howdah/internal/host/logfile"
	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

const logName = "postgresql.log.2026-11-22-01"

// logHost starts an agent that has one member with one log file.
func logHost(t *testing.T, h *hometest.Home, shows certs.Pair) (address string) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "log"), 0o700), os.WriteFile(filepath.Join(dir, "log", logName), []byte("1\n2\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	config, err := shows.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(LogHandler(func(member string) (logfile.Dir, bool) {
		return logfile.Dir{Root: dir, Sub: "log", Owner: member}, member == "db-1.m1"
	}, slog.New(slog.DiscardHandler)))
	server.Listener = tls.NewListener(server.Listener, config)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestLogsOfAnotherHost(t *testing.T) {
	h := hometest.New(t)
	address := logHost(t, h, h.Issue(t, "agent:zone-a"))
	l := &LogReader{Identity: h.Issue(t, "howdah-serve")}
	files, err := l.Files(t.Context(), "zone-a", address, "db-1.m1")
	if err != nil || len(files) != 1 || files[0].Name != logName || files[0].Size != 4 {
		t.Fatalf("listed %v: %v", files, err)
	}
	p, err := l.Portion(t.Context(), "zone-a", address, LogRequest{Member: "db-1.m1", File: logName, Marker: "0", Lines: 1})
	if err != nil || string(p.Text) != "1\n" || !p.More {
		t.Fatalf("read %+v: %v", p, err)
	}
	for name, c := range map[string]struct {
		in   LogRequest
		want error
	}{
		"no such file":   {LogRequest{Member: "db-1.m1", File: "postgresql.log.2026-11-22-02"}, logfile.ErrNoFile},
		"a path":         {LogRequest{Member: "db-1.m1", File: "../log/" + logName}, logfile.ErrNoFile},
		"another member": {LogRequest{Member: "db-1.m2", File: logName}, logfile.ErrNoFile},
		"a path of one":  {LogRequest{Member: "../db-1.m1", File: logName}, logfile.ErrNoFile},
		"a wrong marker": {LogRequest{Member: "db-1.m1", File: logName, Marker: "x"}, logfile.ErrMarker},
	} {
		if p, err := l.Portion(t.Context(), "zone-a", address, c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// Agents answer only control planes, and control planes believe only the agent of the host.
func TestLogsAreForTheControlPlane(t *testing.T) {
	h := hometest.New(t)
	address := logHost(t, h, h.Issue(t, "agent:zone-a"))
	other, err := certs.New("another home")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := other.Issue(certs.Subject{CommonName: "howdah-serve"})
	if err != nil {
		t.Fatal(err)
	}
	believes := stranger
	believes.CAPEM = h.CA.CertPEM
	for name, identity := range map[string]certs.Pair{
		"another agent": h.Issue(t, "agent:zone-b"), "an edge": h.Issue(t, "edge:e1"), "another home": believes,
	} {
		if files, err := (&LogReader{Identity: identity}).Files(t.Context(), "zone-a", address, "db-1.m1"); err == nil {
			t.Errorf("%s: listed %v", name, files)
		}
	}
	l := &LogReader{Identity: h.Issue(t, "howdah-serve")}
	lookalike, err := other.Issue(certs.Subject{CommonName: "agent:zone-a"})
	if err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{
		"the agent of another host": logHost(t, h, h.Issue(t, "agent:zone-b")),
		"an agent of another home":  logHost(t, h, lookalike),
		"nobody":                    testkit.FreeAddr(t),
		"an old agent":              "",
	} {
		if files, err := l.Files(t.Context(), "zone-a", address, "db-1.m1"); !errors.Is(err, ErrNoHost) {
			t.Errorf("%s: listed %v, %v", name, files, err)
		}
	}
}
