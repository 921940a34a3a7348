package spec

import "testing"

func TestParseAuthority(t *testing.T) {
	for id, want := range map[string]struct {
		line       string
		generation int
	}{
		"howdah-ca": {"howdah-ca", 1}, "howdah-ca-g2": {"howdah-ca", 2}, "howdah-ca-g17": {"howdah-ca", 17},
		"rds-ca-rsa2048-g1": {"rds-ca-rsa2048", 1}, "rds-ca-rsa4096-g3": {"rds-ca-rsa4096", 3}, "rds-ca-ecc384-g1": {"rds-ca-ecc384", 1},
		"howdah-ca-g1": {}, "howdah-ca-g0": {}, "howdah-ca-g02": {}, "howdah-ca-g-2": {}, "howdah-ca-g+2": {}, "howdah-ca-g": {},
		"rds-ca-rsa2048": {}, "rds-ca-2019": {}, "rds-ca-rsa2048-g1x": {}, "": {}, "HOWDAH-CA": {},
	} {
		line, n, ok := ParseAuthority(id)
		if line.Name != want.line || n != want.generation || ok != (want.line != "") {
			t.Errorf("%q: %q %d %t, want %q %d", id, line.Name, n, ok, want.line, want.generation)
		}
		if ok && line.Authority(n) != id {
			t.Errorf("%q is %q again", id, line.Authority(n))
		}
	}
}

func TestNewerAuthority(t *testing.T) {
	all := []string{"howdah-ca", "howdah-ca-g2", "howdah-ca-g10", "howdah-ca-g9", "rds-ca-rsa2048-g1", "rds-ca-ecc384-g2"}
	for id, want := range map[string]string{
		"howdah-ca": "howdah-ca-g10", "howdah-ca-g9": "howdah-ca-g10", "howdah-ca-g10": "", "howdah-ca-g11": "",
		"rds-ca-rsa2048-g1": "", "rds-ca-ecc384-g1": "rds-ca-ecc384-g2", "strange": "",
	} {
		if got, ok := NewerAuthority(id, all); got != want || ok != (want != "") {
			t.Errorf("newer than %s: %q %t, want %q", id, got, ok, want)
		}
	}
}
