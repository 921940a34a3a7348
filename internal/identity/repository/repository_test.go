package repository

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
)

func sealer(t *testing.T, key string) *Sealer {
	t.Helper()
	s, err := NewSealer([]byte(strings.Repeat(key, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var remote = backup.Repository{
	Name: "far", ID: "repo-1", Kind: backup.S3, Endpoint: "https://s3:1", Region: "r", Bucket: "b", Prefix: "p/", CA: "ca", AccessKey: "ak",
}

func TestWhatOpensARepository(t *testing.T) {
	s, key := sealer(t, "k"), NewKey()
	r := s.Seal(remote, key, "s3cret")
	if text, err := json.Marshal(r); err != nil || bytes.Contains(text, []byte("s3cret")) || bytes.Contains(text, []byte(base64.StdEncoding.EncodeToString(key))) {
		t.Errorf("%s, %v", text, err)
	}
	got, err := s.Access(r, "db-1")
	want := member.Repository{
		Name: "far", ID: "repo-1", Kind: "s3", Endpoint: "https://s3:1", Region: "r", Bucket: "b", Prefix: "p/", CA: "ca", AccessKey: "ak",
		Secret: "s3cret", Passphrase: Passphrase(key, "db-1"),
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if none, err := s.Access(r, ""); err != nil || none.Passphrase != "" || none.Secret != "s3cret" {
		t.Errorf("without a database: %+v, %v", none, err)
	}
	plain := s.Seal(backup.Repository{Name: "d", ID: "repo-2", Kind: backup.Directory, Path: "/d"}, nil, "")
	if a, err := s.Access(plain, "db-1"); err != nil || a != (member.Repository{Name: "d", ID: "repo-2", Kind: "directory", Path: "/d"}) || plain.Encrypted() {
		t.Errorf("not encrypted: %+v, %v", a, err)
	}
}

// A record that somebody altered in the state opens nothing.
func TestSealedSecretsAreBound(t *testing.T) {
	s := sealer(t, "k")
	for name, change := range map[string]func(*backup.Repository){
		"another repository":    func(r *backup.Repository) { r.ID = "repo-2" },
		"another server":        func(r *backup.Repository) { r.Endpoint = "https://evil" },
		"another bucket":        func(r *backup.Repository) { r.Bucket = "x" },
		"another access key":    func(r *backup.Repository) { r.AccessKey = "x" },
		"another authority":     func(r *backup.Repository) { r.CA = "x" },
		"an altered key":        func(r *backup.Repository) { r.Key[20] ^= 1 },
		"an altered secret":     func(r *backup.Repository) { r.Secret[15] ^= 1 },
		"the secret as the key": func(r *backup.Repository) { r.Key = r.Secret },
	} {
		r := s.Seal(remote, NewKey(), "s3cret")
		change(&r)
		if a, err := s.Access(r, "db-1"); err == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a, err := sealer(t, "x").Access(s.Seal(remote, NewKey(), ""), "db-1"); err == nil {
		t.Errorf("another home opens it: %+v", a)
	}
	if _, err := NewSealer([]byte("short")); err == nil {
		t.Error("a short key seals")
	}
	r := s.Seal(remote, NewKey(), "")
	r.Name = "renamed"
	if _, err := s.Access(r, "db-1"); err != nil {
		t.Errorf("with another name: %v", err)
	}
}

// Passphrases must stay what they are for ever: backups that exist are encrypted with them.
func TestPassphrases(t *testing.T) {
	key := bytes.Repeat([]byte{7}, Size)
	if got := Passphrase(key, "db-1"); got != "zLeWVc/u4wdHKCKKYui8yyI79Q40l+LDw2kXrv+2FSc=" {
		t.Error(got)
	}
	seen := map[string]bool{}
	for _, text := range []string{Passphrase(key, "db-1"), Passphrase(key, "db-2"), Passphrase(NewKey(), "db-1"), Proof(key, "db-1"), NewID(), NewID()} {
		if seen[text] || text == "" {
			t.Errorf("%q again", text)
		}
		seen[text] = true
	}
	if Passphrase(nil, "db-1") != "" || Proof(nil, "repo-1") != "" {
		t.Error("no key encrypts")
	}
	proof := Proof(key, "repo-1")
	if !Proved(key, "repo-1", proof) || Proved(NewKey(), "repo-1", proof) || Proved(key, "repo-2", proof) || Proved(nil, "repo-1", proof) || !Proved(nil, "repo-1", "") {
		t.Error("the proof takes another key for the right one")
	}
}

func TestExportedKeys(t *testing.T) {
	e := Exported{Name: "default", ID: "repo-0123456789abcdef", Key: NewKey()}
	text := e.Text()
	for name, typed := range map[string]string{
		"as it was":       text,
		"in small":        strings.ToLower(text),
		"without hyphens": onlyKey(text),
		"with more lines": "\n# from the vault\n" + strings.ReplaceAll(text, "\n", "\r\n") + "\nkept by: Jane\n",
		"with digits":     strings.Replace(text, keyLine(text), "key: "+strings.NewReplacer("O", "0", "I", "1", "B", "8").Replace(keyLine(text)[5:]), 1),
		"without a title": strings.TrimPrefix(text, exportTitle),
	} {
		if got, err := Parse(typed); err != nil || got.ID != e.ID || !bytes.Equal(got.Key, e.Key) {
			t.Errorf("%s: %+v, %v\n%s", name, got, err, typed)
		}
	}
	for name, typed := range map[string]string{
		"nothing":         "",
		"another text":    "-----BEGIN CERTIFICATE-----\nabc\n",
		"another version": strings.Replace(text, "version 1", "version 2", 1),
		"half a key":      strings.Replace(text, keyLine(text), keyLine(text)[:30], 1),
		"another id":      strings.Replace(text, "cdef", "cdee", 1),
		"no check":        strings.ReplaceAll(text, "check: ", "mark: "),
	} {
		if got, err := Parse(typed); !errors.Is(err, ErrExport) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// Every single mistyped letter of the key is found.
	line := keyLine(text)
	for i := range line {
		if i < len("key:   ") || line[i] == '-' {
			continue
		}
		other := byte('A')
		if line[i] == 'A' {
			other = 'C'
		}
		typed := strings.Replace(text, line, line[:i]+string(other)+line[i+1:], 1)
		if got, err := Parse(typed); err == nil && !bytes.Equal(got.Key, e.Key) {
			t.Errorf("letter %d of %s may be %c", i, line, other)
		}
	}
}

func keyLine(text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "key:") {
			return strings.TrimSuffix(line, "\n")
		}
	}
	return ""
}

// onlyKey returns the text with a key without hyphens.
func onlyKey(text string) string {
	line := keyLine(text)
	return strings.Replace(text, line, strings.ReplaceAll(line, "-", ""), 1)
}

func FuzzParse(f *testing.F) {
	f.Add(Exported{Name: "n", ID: "repo-1", Key: NewKey()}.Text())
	f.Add("id: \nkey: AAAA\ncheck: ")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(e.Text()); err != nil || !bytes.Equal(again.Key, e.Key) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
