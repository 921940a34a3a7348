package zone

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

const (
	account = "123456789012"
	region  = "us-west-2"
)

func TestNames(t *testing.T) {
	const zone = Zone("howdah.internal")
	hash := Hash(account, region)
	for _, c := range []struct {
		kind     Kind
		id, want string
	}{
		{Instance, "orders", "orders." + hash + ".us-west-2.howdah.internal"},
		{Instance, "Orders", "orders." + hash + ".us-west-2.howdah.internal"},
		{Writer, "shop", "shop.cluster-" + hash + ".us-west-2.howdah.internal"},
		{Reader, "shop", "shop.cluster-ro-" + hash + ".us-west-2.howdah.internal"},
		{Custom, "reports", "reports.cluster-custom-" + hash + ".us-west-2.howdah.internal"},
	} {
		if got, err := zone.Name(c.kind, c.id, account, region); got != c.want || err != nil {
			t.Errorf("%q %q: %q, %v; want %q", c.kind, c.id, got, err, c.want)
		}
	}
	if got, err := Zone("").Name(Instance, "orders", account, region); got != "" || err != nil {
		t.Errorf("without a zone: %q, %v", got, err)
	}
}

// Drivers find the parts of a name by this form (aws-advanced-jdbc-wrapper has it for RDS's own zone).
func TestNamesHaveTheFormThatDriversTakeApart(t *testing.T) {
	form := regexp.MustCompile(`^(.+)\.(cluster-|cluster-ro-|cluster-custom-)?([a-zA-Z0-9]+)\.([a-zA-Z0-9-]+)\.howdah\.internal$`)
	for kind, want := range map[Kind]string{Instance: "", Writer: "cluster-", Reader: "cluster-ro-", Custom: "cluster-custom-"} {
		name, err := Zone("howdah.internal").Name(kind, "a-b", account, region)
		if err != nil {
			t.Fatal(err)
		}
		parts := form.FindStringSubmatch(name)
		if parts == nil || parts[1] != "a-b" || parts[2] != want || parts[4] != region {
			t.Errorf("%s: %q", name, parts)
		}
	}
}

func TestHash(t *testing.T) {
	hash := Hash(account, region)
	if !regexp.MustCompile(`^c[a-z2-7]{11}$`).MatchString(hash) {
		t.Errorf("%q is not in RDS's form", hash)
	}
	// What is written down in clients' connection strings stays: the value itself is a contract.
	if want := "cee4rlwlgtsg"; hash != want {
		t.Errorf("%q, want %q: names of existing databases would change", hash, want)
	}
	if Hash(account, "US-WEST-2") != hash {
		t.Error("the case of the region counts")
	}
	if Hash(account, "eu-west-1") == hash || Hash("210987654321", region) == hash {
		t.Error("accounts and regions are not told apart")
	}
}

func TestNamesThatAreTooLong(t *testing.T) {
	long := Zone(strings.Repeat("zone67890.", 19) + "internal") // 198 characters
	if _, err := Parse(string(long)); err != nil {
		t.Fatal(err)
	}
	fits := mostName - len("."+Hash(account, region)+"."+region+"."+string(long))
	for id, ok := range map[string]bool{
		strings.Repeat("a", fits): true, strings.Repeat("a", fits+1): false, strings.Repeat("a", 63): false,
	} {
		name, err := long.Name(Instance, id, account, region)
		if (err == nil) != ok || err != nil && !errors.Is(err, ErrLong) || ok && len(name) != mostName {
			t.Errorf("%d characters: %q, %v", len(id), name, err)
		}
	}
	short := Zone("howdah.internal")
	if _, err := short.Name(Instance, strings.Repeat("a", 63), account, region); err != nil {
		t.Errorf("the longest label: %v", err)
	}
	if _, err := short.Name(Instance, strings.Repeat("a", 64), account, region); !errors.Is(err, ErrLong) {
		t.Errorf("a label that is too long: %v", err)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]Zone{
		"howdah.internal":          "howdah.internal",
		"Howdah.Internal.":         "howdah.internal",
		" db.test ":                "db.test", //nolint:gocritic // a space that a user typed
		"howdah.home.arpa":         "howdah.home.arpa",
		"db.localdomain":           "db.localdomain",
		"db.lan":                   "db.lan",
		"db.corp":                  "db.corp",
		"rds.amazonaws.com.test":   "rds.amazonaws.com.test",
		"xn--bcher-kva.internal":   "xn--bcher-kva.internal",
		"a.b.c.d.e.f.internal":     "a.b.c.d.e.f.internal",
		"1.internal":               "1.internal",
		"com.internal":             "com.internal",
		"us-west-2.rds.localhost1": "us-west-2.rds.localhost1",
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]error{
		"example.com":                           ErrPublic,
		"db.example.co.uk":                      ErrPublic,
		"rds.amazonaws.com":                     ErrPublic,
		"something.github.io":                   ErrPublic,
		"db.ck":                                 ErrPublic, // *.ck is in the list, and not ck
		"db.arpa":                               ErrPublic,
		"db.dev":                                ErrPublic,
		"com":                                   ErrForm,
		"internal":                              ErrForm,
		"home.arpa":                             ErrForm,
		"db.local":                              ErrUnfit,
		"db.localhost":                          ErrUnfit,
		"db.invalid":                            ErrUnfit,
		"db.onion":                              ErrUnfit,
		"":                                      ErrForm,
		".":                                     ErrForm,
		"..":                                    ErrForm,
		"db..internal":                          ErrForm,
		".internal":                             ErrForm,
		"-db.internal":                          ErrForm,
		"db_1.internal":                         ErrForm,
		"db internal":                           ErrForm,
		"bücher.internal":                       ErrForm,
		"db.internal..":                         ErrForm,
		"*.internal":                            ErrForm,
		"10.1.2.3":                              ErrForm,
		"db.\ninternal":                         ErrForm,
		"$(reboot).internal":                    ErrForm,
		strings.Repeat("a", 64) + ".internal":   ErrForm,
		strings.Repeat("a.", 97) + "internal":   ErrForm,
		strings.Repeat("a.", 5000) + "internal": ErrForm,
	} {
		got, err := Parse(text)
		if got != "" || !errors.Is(err, want) {
			t.Errorf("%.60q: %q, %v; want %v", text, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60q: the error has several lines: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"howdah.internal", "example.com", "a..b", "x.home.arpa"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		z, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(string(z)); again != z || err != nil {
			t.Errorf("%q: %q is read as %q, %v", text, z, again, err)
		}
		if _, err := z.Name(Custom, "a", account, region); err != nil && !errors.Is(err, ErrLong) {
			t.Error(err)
		}
	})
}
