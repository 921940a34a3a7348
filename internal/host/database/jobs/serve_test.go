package jobs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/job"
	"howdah/internal/identity/certs"
	model "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
)

// served is a primary whose host serves it to the backup of its standby m2.
type served struct {
	*depot
	model.Served
	members *certs.CA // signs the certificates of members
	stop    func()    // ends the agent
}

func newServed(t *testing.T) *served {
	t.Helper()
	s := &served{depot: newDepot(t), members: authority(t)}
	own := s.dir("own")
	pair, err := s.members.Issue(certs.Subject{CommonName: hostapi.MemberName(member.ID(resource, "m1"))})
	s.must(err)
	s.must(pair.Write(own))
	for _, name := range []string{certs.CertFile, certs.KeyFile, certs.CAFile} {
		s.server.Give(filepath.Join(own, name))
	}
	h := &Host{
		Engine: s.engine, Log: slog.New(slog.DiscardHandler), Own: func(string) string { return own },
		Place: func(string) (backup.Place, error) { return s.place, nil }, User: func(string) *owner.User { return s.user },
		Port: func(context.Context) (string, int, error) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				return "", 0, err
			}
			return "127.0.0.1", l.Addr().(*net.TCPAddr).Port, l.Close()
		},
	}
	args, err := json.Marshal(model.ServeJob{Database: resource, Member: "m1", Standby: "m2"})
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, _, err := job.Try(ctx, job.Kind{Name: model.JobServe, Run: h.serve, Adopts: true, Light: true},
			member.Job{Name: "op-1/serve", Host: "zone-a", Kind: model.JobServe, Args: args}, job.Trial{Dir: s.jobs, Procs: s.procs, Log: h.Log})
		ended <- err
	}()
	s.stop = func() {
		cancel()
		<-ended
		ended <- nil
	}
	t.Cleanup(s.stop) // what it left is removed after that: see newDepot
	testkit.Eventually(t, 20*time.Second, func() error {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the job ended: %v", err)
		default:
		}
		found, err := filepath.Glob(filepath.Join(s.jobs, "*", "*", servedFile))
		if more, _ := filepath.Glob(filepath.Join(s.jobs, "*", servedFile)); len(more) > 0 {
			found = more
		}
		if err != nil || len(found) != 1 {
			return fmt.Errorf("it does not serve: %q, %w", found, err)
		}
		text, err := os.ReadFile(found[0])
		if err == nil {
			err = json.Unmarshal(text, &s.Served)
		}
		return err
	})
	return s
}

func authority(t *testing.T) *certs.CA {
	t.Helper()
	ca, err := certs.New("members")
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// uses has the engine, with a certificate, look at the primary for a repository of its own. It
// returns what was printed, and whether that worked.
func (s *served) uses(name, ca string, pair certs.Pair) (out string, worked bool) {
	s.Helper()
	dir := s.dir(name)
	pair.CAPEM = []byte(ca)
	s.must(pair.Write(dir))
	for _, file := range []string{certs.CertFile, certs.KeyFile, certs.CAFile} {
		s.server.Give(filepath.Join(dir, file))
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	cmd := exec.CommandContext(s.Context(), s.engine.Program, "--stanza="+resource, "--log-level-file=off", "--log-level-console=warn", "--lock-path="+file("lock"),
		"--repo1-path="+file("repository"), "--pg1-path="+s.DataDir, "--pg1-port="+strconv.Itoa(s.PostgresPort), "--pg1-socket-path="+s.SocketDir,
		"--pg1-user="+s.server.User, "--pg1-database="+s.server.Database, "--pg1-host="+s.Address, "--pg1-host-type=tls", "--pg1-host-port="+strconv.Itoa(s.Port),
		"--pg1-host-config="+filepath.Join(s.Dir, "serving.conf"), "--pg1-host-ca-file="+file(certs.CAFile), "--pg1-host-cert-file="+file(certs.CertFile),
		"--pg1-host-key-file="+file(certs.KeyFile), "--io-timeout=5", "stanza-create")
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.server.Credential()}
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

// TestOnlyItsStandbyUsesAPrimary that is served, and only while the job is not forgotten.
func TestOnlyItsStandbyUsesAPrimary(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	issue := func(ca *certs.CA, name string) certs.Pair {
		t.Helper()
		pair, err := ca.Issue(certs.Subject{CommonName: name, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
		s.must(err)
		return pair
	}
	standby := hostapi.MemberName(member.ID(resource, "m2"))
	if out, worked := s.uses("right", string(s.CA), issue(s.members, standby)); !worked {
		t.Fatalf("the standby does not use it: %s", out)
	}
	for name, pair := range map[string]certs.Pair{
		"another standby of the database": issue(s.members, hostapi.MemberName(member.ID(resource, "m3"))),
		"the primary itself":              issue(s.members, hostapi.MemberName(member.ID(resource, "m1"))),
		"another database's standby":      issue(s.members, hostapi.MemberName("db-OTHER.m2")),
		"a host":                          issue(s.members, "agent:zone-b"),
		"another authority":               issue(authority(t), standby),
	} {
		if out, worked := s.uses(strings.ReplaceAll(name, " ", "-"), string(s.CA), pair); worked {
			t.Errorf("%s uses it: %s", name, out)
		}
	}
	// Who got its port is not believed.
	if out, worked := s.uses("fooled", string(issue(s.members, "x").CAPEM), issue(s.members, standby)); worked {
		t.Errorf("a server of another authority is believed: %s", out)
	}
	s.tellsNothing()

	s.stop() // the agent ends, and the server goes on
	if out, worked := s.uses("while-no-agent-runs", string(s.CA), issue(s.members, standby)); !worked {
		t.Errorf("it ended with the agent: %s", out)
	}
	s.must(s.leaveNothing()) // as when a job is forgotten
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort(s.Address, strconv.Itoa(s.Port)))
	if err == nil {
		conn.Close()
		t.Error("it outlives its job")
	}
}

// tellsNothing expects that the server tells a client that shows no certificate nothing but its name
// and release.
func (s *served) tellsNothing() {
	s.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: s.Address, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(s.Context(), "tcp", net.JoinHostPort(s.Address, strconv.Itoa(s.Port)))
	if err != nil {
		return // it is not let in at all
	}
	defer conn.Close()
	s.must(conn.SetDeadline(time.Now().Add(10 * time.Second)))
	_, _ = conn.Write([]byte("{\"cmd\":\"config\"}\n\n"))
	text, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
	for _, secret := range []string{s.DataDir, s.SocketDir, "repo1", "pg1-path"} {
		if strings.Contains(string(text), secret) {
			s.Errorf("it tells a stranger %q", text)
		}
	}
}
