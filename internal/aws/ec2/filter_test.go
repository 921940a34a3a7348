package ec2

import (
	"net/netip"
	"testing"
)

func TestLike(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true},
		{"a", "b", false},
		{"", "", true},
		{"*", "", true},
		{"a*", "abc", true},
		{"*c", "abc", true},
		{"a*c*", "abcd", true},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{"*b*b*", "abcb", true},
		{"*b*b*", "abc", false},
		{"**", "x", true},
		{"a", "ab", false},
	} {
		if got := like(tt.pattern, tt.text); got != tt.want {
			t.Errorf("like(%q, %q) = %v", tt.pattern, tt.text, got)
		}
	}
}

func TestSourceOfRule(t *testing.T) {
	p, err := sourceOfRule("10.1.2.3/16")
	if err != nil || p != netip.MustParsePrefix("10.1.0.0/16") {
		t.Errorf("%v, %v", p, err)
	}
}
