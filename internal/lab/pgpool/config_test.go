package pgpool

import (
	"os"
	"path/filepath"
	"testing"
)

func TestConfiguration(t *testing.T) {
	t.Parallel()
	c := config{
		dir: "/tmp/howdah-pgpool-it's", port: 4001, pcp: 4002, clients: 108,
		backends: []backend{{"writer.example.com", 5432}, {"127.0.0.5", 5433}, {"127.0.0.6", 5434}},
	}
	for name, change := range map[string]func(){
		"plain.conf": func() {}, "tls.conf": func() { c.tls = true }, "authority.conf": func() { c.tls, c.authority = true, true },
	} {
		c.tls, c.authority = false, false
		change()
		expected, err := os.ReadFile(filepath.Join("testdata", name))
		if got := c.text(); err != nil || got != string(expected) {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	if got := passwords("lab", "a b'c"); got != "lab:TEXTa b'c\n" {
		t.Errorf("%q", got)
	}
}
