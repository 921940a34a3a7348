package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"howdah/internal/identity/certs"
)

func TestEnsureMakesAHomeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "h")
	if _, err := Open(dir); !errors.Is(err, ErrNone) {
		t.Fatalf("opening nothing: %v", err)
	}
	first, err := Ensure(dir, Options{Disposable: true})
	if err != nil {
		t.Fatal(err)
	}
	again, err := Ensure(dir, Options{Region: "eu-west-1"})
	if err != nil {
		t.Fatal(err)
	}
	if first.Config != again.Config {
		t.Errorf("a second Ensure changed the home:\n%+v\n%+v", first.Config, again.Config)
	}
	if !strings.HasPrefix(first.Listen, first.Network+".0.1:") {
		t.Errorf("listens on %s in network %s", first.Listen, first.Network)
	}
	moved, err := Ensure(dir, Options{Listen: "127.0.0.1:9"})
	if err != nil || moved.Listen != "127.0.0.1:9" {
		t.Errorf("a new listen address: %q, %v", moved.Listen, err)
	}
}

func TestSecretsAreTheirOwnersOnly(t *testing.T) {
	h, err := Ensure(filepath.Join(t.TempDir(), "h"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"credentials.json", "join.json", "pki/ca.key", "pki/tls.key"} {
		info, err := os.Stat(filepath.Join(h.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", name, info.Mode().Perm())
		}
	}
	config, err := os.ReadFile(filepath.Join(h.Dir, "howdah.json"))
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := h.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(config), credentials[0].Secret) {
		t.Error("the readable configuration holds a secret")
	}
}

func TestCredentials(t *testing.T) {
	h, err := Ensure(filepath.Join(t.TempDir(), "h"), Options{Credential: &Credential{AccessKey: "KEY", Secret: "one"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Account) != 12 {
		t.Errorf("account %q", h.Account)
	}
	for _, c := range []Credential{{"KEY", "two", ""}, {"OTHER", "three", "000000000007"}} {
		if _, err := Ensure(h.Dir, Options{Credential: &c}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := h.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	want := []Credential{{"OTHER", "three", "000000000007"}, {"KEY", "two", h.Account}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("credentials %+v, want %+v", got, want)
	}
}

func TestParseCredential(t *testing.T) {
	good := map[string]Credential{
		"AKID:secret":              {"AKID", "secret", ""},
		"AKID:secret:123456789012": {"AKID", "secret", "123456789012"},
	}
	for text, want := range good {
		if got, err := ParseCredential(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "AKID", ":secret", "AKID:", "A B:secret", "AKID:secret:12", "AKID:secret:123456789012:x"} {
		if got, err := ParseCredential(text); err == nil {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestTokensCarryTheAuthority(t *testing.T) {
	h, err := Ensure(filepath.Join(t.TempDir(), "h"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ca, err := h.CA()
	if err != nil {
		t.Fatal(err)
	}
	join, err := h.Join()
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{join.AgentToken, join.ServerToken} {
		if got, err := TokenFingerprint(token); err != nil || got != certs.Fingerprint(ca.Cert) {
			t.Errorf("fingerprint %q, %v", got, err)
		}
	}
	if join.AgentToken == join.ServerToken {
		t.Error("an agent's token would make a control plane")
	}
	if _, err := TokenFingerprint("hj1.abc"); err == nil {
		t.Error("half a token was accepted")
	}
}

func TestTwoHomesGetTwoNetworks(t *testing.T) {
	id := randomHex(4)
	network, release, err := claimFree(id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	other, err := chooseNetwork(id)
	if err != nil {
		t.Fatal(err)
	}
	if other == network {
		t.Errorf("both homes got %s", network)
	}
	if _, err := Claim(network); !errors.Is(err, ErrLocked) {
		t.Errorf("claiming what is claimed: %v", err)
	}
}

// claimFree chooses a network and claims it. Another run may claim what is free in between.
func claimFree(id string) (network string, release func(), err error) {
	for range 10 {
		if network, err = chooseNetwork(id); err != nil {
			return "", nil, err
		}
		if release, err = Claim(network); !errors.Is(err, ErrLocked) {
			break
		}
	}
	return network, release, err
}

func TestOneHolderOfALock(t *testing.T) {
	h, err := Ensure(filepath.Join(t.TempDir(), "h"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if pid := h.Holder("up"); pid != 0 {
		t.Errorf("held by %d before anyone took it", pid)
	}
	lock, err := h.Lock("up")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Lock("up"); !errors.Is(err, ErrLocked) {
		t.Errorf("a second holder: %v", err)
	}
	if pid := h.Holder("up"); pid != os.Getpid() {
		t.Errorf("held by %d, want %d", pid, os.Getpid())
	}
	lock.Release()
	if pid := h.Holder("up"); pid != 0 {
		t.Errorf("still held by %d", pid)
	}
}

// A process that only looks who has a role does not keep others from taking it.
func TestALookDoesNotTakeTheLock(t *testing.T) {
	h, err := Ensure(filepath.Join(t.TempDir(), "h"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	ended := make(chan struct{})
	defer close(ended)
	looking.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
				h.Holder("up")
			}
		}
	})
	for range 1000 {
		lock, err := h.Lock("up")
		if err != nil {
			t.Fatal(err)
		}
		lock.Release()
	}
}

func TestPurgeLeavesWhatIsNotOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "h")
	h, err := Ensure(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(theirs, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Purge(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "thesis.txt" {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestDataLivesWhereItsUserCanReachIt(t *testing.T) {
	private := t.TempDir()
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	if reachable(filepath.Join(private, "h")) {
		t.Error("a directory below a private one counts as reachable")
	}
	if !reachable("/var/lib/howdah") {
		t.Error("/var/lib/howdah counts as unreachable")
	}
}
