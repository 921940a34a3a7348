package parts

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/admin/client/testserver"
	"howdah/internal/cli"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
)

func TestJoining(t *testing.T) {
	s := testserver.Start(t, testserver.Options{NoHosts: true})
	tokens, err := s.Home.Join()
	if err != nil {
		t.Fatal(err)
	}
	o := joinOptions{dir: t.TempDir(), kind: hostapi.Edge, name: "edge-1"}
	if err := localJoin(s.Home, &o); err != nil {
		t.Fatal(err)
	}
	t.Run("refused with a token that is not ours", func(t *testing.T) {
		other := o
		other.dir, other.token = t.TempDir(), strings.Replace(tokens.AgentToken, "hj1.", "hj1.0", 1)
		if _, _, err := ensureMember(t.Context(), other, cli.NewLog("test")); !errors.Is(err, hostapi.ErrRefused) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("refuses an authority that is not the token's", func(t *testing.T) {
		other := o
		fingerprint := strings.Repeat("0", 64)
		other.dir, other.token = t.TempDir(), home.NewToken(fingerprint)
		if _, _, err := ensureMember(t.Context(), other, cli.NewLog("test")); !errors.Is(err, certs.ErrNotOurs) {
			t.Errorf("error %v", err)
		}
	})
	first, _, err := ensureMember(t.Context(), o, cli.NewLog("test"))
	if err != nil {
		t.Fatal(err)
	}
	if first.HomeID != s.Home.ID || len(first.Etcd) != 1 || len(first.Control) != 1 {
		t.Errorf("membership %+v", first)
	}
	// Once joined, it starts without the control plane.
	o.url = "https://127.0.0.1:1"
	again, _, err := ensureMember(t.Context(), o, cli.NewLog("test"))
	if err != nil || again.HomeID != first.HomeID {
		t.Errorf("membership %+v: %v", again, err)
	}
	bad := o
	bad.dir, bad.token = t.TempDir(), "what else was in the file"
	if _, _, err := ensureMember(t.Context(), bad, cli.NewLog("test")); err == nil || !strings.Contains(err.Error(), "not a join token") {
		t.Errorf("error %v", err)
	}
	for _, nowhere := range []string{"127.0.0.1:7443", "http://127.0.0.1:7443", "https://", "https://:7443", "%"} {
		bad := o
		bad.dir, bad.url = t.TempDir(), nowhere
		if _, _, err := ensureMember(t.Context(), bad, cli.NewLog("test")); !errors.Is(err, cli.ErrUsage) {
			t.Errorf("--join %s: %v", nowhere, err)
		}
	}
	// The control plane is not there. The command waits for it until the context ends.
	o.name = "edge-2"
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := ensureMember(ctx, o, cli.NewLog("test")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// Hosts and further control planes may be started before the first one answers.
func TestAControlPlaneThatStartsIsWaitedFor(t *testing.T) {
	for _, end := range []error{nil, hostapi.ErrRefused, certs.ErrNotOurs} {
		asked := 0
		err := untilAnswered(t.Context(), "https://127.0.0.1:7443", home.NewToken(strings.Repeat("0", 64)), cli.NewLog("test"), func(context.Context) error {
			if asked++; asked < 3 {
				return syscall.ECONNREFUSED
			}
			return end
		})
		if !errors.Is(err, end) || asked != 3 {
			t.Errorf("asked %d times, want 3: %v, want %v", asked, err, end)
		}
	}
}
