// Package s3test runs a real S3 server, versitygw, for tests: with TLS, on loopback, with its
// objects in a directory.
package s3test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
)

// The bucket that is there, and what logs in.
const (
	Bucket    = "backups"
	AccessKey = "tester"
	Secret    = "a secret for tests"
)

// Server is an S3 server.
type Server struct {
	Endpoint string // https://127.0.0.1:port
	CA       string // PEM
	Dir      string // has a directory for each bucket
	Pid      int
}

// Start starts a server, which ends with the test. options are more of its options.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	program := os.Getenv("HOWDAH_TEST_VERSITYGW")
	if program == "" {
		program = testkit.NeedProgram(t, "versitygw")
	}
	ca, err := certs.New("test")
	must(t, err)
	pair, err := ca.Issue(certs.Subject{CommonName: "s3", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	must(t, err)
	work, addr := t.TempDir(), testkit.FreeAddr(t)
	at := func(name string) string { return filepath.Join(work, name) }
	must(t, os.MkdirAll(at("data/"+Bucket), 0o755))
	must(t, os.WriteFile(at("tls.crt"), pair.CertPEM, 0o600))
	must(t, os.WriteFile(at("tls.key"), pair.KeyPEM, 0o600))
	log, err := os.Create(at("log"))
	must(t, err)
	t.Cleanup(func() { log.Close() })
	args := append([]string{"--port", addr, "--cert", at("tls.crt"), "--key", at("tls.key"), "--keep-alive", "--quiet"}, options...)
	cmd := exec.CommandContext(t.Context(), program, append(args, "posix", at("data"))...)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+Secret)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	testkit.Start(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, err := os.ReadFile(at("log")); err == nil && t.Failed() {
			t.Logf("versitygw:\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	s := &Server{Endpoint: "https://" + addr, CA: string(pair.CAPEM), Dir: at("data"), Pid: cmd.Process.Pid}
	s.await(t, addr)
	return s
}

// await waits until the server answers.
func (s *Server) await(t testing.TB, addr string) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(s.CA))
	testkit.Eventually(t, 20*time.Second, func() error {
		dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots}}
		conn, err := dialer.DialContext(t.Context(), "tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
