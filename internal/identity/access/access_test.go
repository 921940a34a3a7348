package access

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"howdah/internal/identity/iam"
)

func sealer(t *testing.T, fill string) *Sealer {
	t.Helper()
	s, err := NewSealer([]byte(strings.Repeat(fill, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const policy = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"rds:Describe*","Resource":"*"}}`

func TestSecretOpensWithItsOwnRecordOnly(t *testing.T) {
	s := sealer(t, "k")
	k, secret := s.Issue(Key{Account: "123456789012", Policy: policy})
	if len(secret) != 40 || k.Name != k.ID || !strings.HasPrefix(k.ID, "HOWDAH") {
		t.Errorf("%+v, a secret of %d characters", k, len(secret))
	}
	text, err := json.Marshal(k)
	if err != nil || strings.Contains(string(text), secret) {
		t.Errorf("the record holds the secret: %s, %v", text, err)
	}
	var stored Key
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Open(stored); err != nil || got != secret {
		t.Errorf("%q, %v", got, err)
	}
	other, _ := s.Issue(Key{Account: "123456789012"})
	for name, change := range map[string]func(*Key){
		"another id":      func(k *Key) { k.ID = "OTHER" },
		"another account": func(k *Key) { k.Account = "000000000001" },
		"another name":    func(k *Key) { k.Name = "root" },
		"no policy":       func(k *Key) { k.Policy = "" },
		"read only":       func(k *Key) { k.ReadOnly = true },
		"another secret":  func(k *Key) { k.Sealed = other.Sealed },
		"no secret":       func(k *Key) { k.Sealed = nil },
	} {
		changed := k
		change(&changed)
		if got, err := s.Open(changed); err == nil {
			t.Errorf("%s: opened as %q", name, got)
		}
	}
	if _, err := sealer(t, "x").Open(k); err == nil {
		t.Error("opened with another seal key")
	}
}

func TestTwoKeysDiffer(t *testing.T) {
	s := sealer(t, "k")
	a, secretA := s.Issue(Key{Account: "123456789012"})
	b, secretB := s.Issue(Key{Account: "123456789012"})
	if a.ID == b.ID || secretA == secretB {
		t.Error("two keys are the same")
	}
}

func TestSealKeyMustHaveItsLength(t *testing.T) {
	if _, err := NewSealer([]byte("short")); err == nil {
		t.Error("a short key was taken")
	}
}

func TestCheck(t *testing.T) {
	good := Key{Account: "123456789012", Name: "ci@example", Policy: policy}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, k := range []Key{{Account: "1", Name: "a"}, {Account: "123456789012"}, {Account: "123456789012", Name: "a/b"}} {
		if err := k.Check(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", k, err)
		}
	}
	bad := good
	bad.Policy = "{}"
	if err := bad.Check(); !errors.Is(err, iam.ErrInvalid) {
		t.Error(err)
	}
}

func TestReadOnly(t *testing.T) {
	policies, err := Key{ReadOnly: true, Policy: policy}.Policies()
	if err != nil || len(policies) != 2 {
		t.Fatal(policies, err)
	}
	for action, want := range map[string]iam.Decision{
		"rds:DescribeDBInstances": iam.Allowed, "rds:ListTagsForResource": iam.Allowed, "sts:GetCallerIdentity": iam.Allowed,
		"howdah:Status": iam.Allowed, "rds:DownloadDBLogFilePortion": iam.Allowed,
		"rds:DeleteDBInstance": iam.NotAllowed, "howdah:Wipe": iam.NotAllowed, "howdah:KeyCreate": iam.NotAllowed, "howdah:KeyList": iam.NotAllowed,
	} {
		if got := policies[0].Decide(iam.Request{Action: action, Resource: "*"}); got != want {
			t.Errorf("%s: %d, want %d", action, got, want)
		}
	}
	if all, err := (Key{}).Policies(); err != nil || all != nil {
		t.Error("a key without limits has some")
	}
}
