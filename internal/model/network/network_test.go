package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/network/cidr"
	"howdah/internal/model/spec"
)

var here = spec.Scope{Account: "123456789012", Region: "us-east-1"}

func rule(protocol string, from, to int, source string) Rule {
	return Rule{Protocol: protocol, From: from, To: to, Source: netip.MustParsePrefix(source)}
}

// everyone is what the tables write for all networks.
const everyone = "everyone"

func TestAdmitted(t *testing.T) {
	book := NewBook([]Group{
		{Scope: here, ID: "sg-office", Rules: []Rule{rule(TCP, 5432, 5432, "10.1.0.0/16")}},
		{Scope: here, ID: "sg-wide", Rules: []Rule{rule(TCP, 1, 65535, "10.0.0.0/8")}},
		{Scope: here, ID: "sg-any", Rules: []Rule{rule(AnyProtocol, -1, -1, "192.168.0.0/16")}},
		{Scope: here, ID: "sg-web", Rules: []Rule{rule(TCP, 443, 443, "0.0.0.0/0"), rule(TCP, 5433, 6000, "0.0.0.0/0")}},
		{Scope: here, ID: "sg-udp", Rules: []Rule{rule("udp", 5432, 5432, "0.0.0.0/0"), rule("icmp", -1, -1, "0.0.0.0/0")}},
		{Scope: here, ID: "sg-world", Rules: []Rule{rule(TCP, 5432, 5432, "0.0.0.0/0")}},
		{Scope: here, ID: "sg-none"},
		{Scope: spec.Scope{Account: "999999999999", Region: "us-east-1"}, ID: "sg-theirs", Rules: []Rule{rule(TCP, 5432, 5432, "0.0.0.0/0")}},
	})
	for _, tt := range []struct {
		name   string
		groups string
		port   int
		want   string
	}{
		{"a rule for the port", "sg-office", 5432, "10.1.0.0/16"},
		{"a rule for another port", "sg-office", 5433, ""},
		{"a range of ports, at its ends", "sg-wide", 65535, "10.0.0.0/8"},
		{"one network in another", "sg-office sg-wide", 5432, "10.0.0.0/8"},
		{"several groups", "sg-office sg-any", 5432, "10.1.0.0/16 192.168.0.0/16"},
		{"any protocol", "sg-any", 1150, "192.168.0.0/16"},
		{"other ports than the database's", "sg-web", 5432, ""},
		{"the same group for another database", "sg-web", 5500, everyone},
		{"other protocols", "sg-udp", 5432, ""},
		{"the whole world", "sg-world sg-office", 5432, everyone},
		{"no rules", "sg-none", 5432, ""},
		{"no group counts as the default one", "", 5432, everyone},
		{"the default group", Default(here).ID, 5432, everyone},
		{"a group that does not exist", "sg-lost", 5432, ""},
		{"a group of another account", "sg-theirs", 5432, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := book.Admitted(here, strings.Fields(tt.groups), tt.port)
			text := strings.Join(cidr.Texts(got), " ")
			if got == nil {
				text = everyone
			}
			if text != tt.want {
				t.Errorf("got %q, want %q", text, tt.want)
			}
		})
	}
}

// A default group that was changed is the changed one.
func TestDefaultGroup(t *testing.T) {
	changed := Default(here)
	changed.Rules = []Rule{rule(TCP, 5432, 5432, "10.0.0.0/8")}
	book := NewBook([]Group{changed})
	if got := cidr.Texts(book.Admitted(here, nil, 5432)); !cmp.Equal(got, []string{"10.0.0.0/8"}) {
		t.Errorf("admits %v", got)
	}
	other := spec.Scope{Account: here.Account, Region: "eu-west-1"}
	if got := book.Admitted(other, nil, 5432); got != nil {
		t.Errorf("another region's admits %v", got)
	}
	if first, again := Default(here), Default(here); first.ID == Default(other).ID || first.ID != again.ID {
		t.Error("ids of default groups are not one a scope")
	}
	var ids []string
	for _, g := range book.In(here) {
		ids = append(ids, g.ID)
	}
	if len(ids) != 1 || ids[0] != changed.ID {
		t.Errorf("groups %v", ids)
	}
}

func TestARN(t *testing.T) {
	g := Group{Scope: here, ID: "sg-1"}
	if got, want := g.ARN(), "arn:aws:ec2:us-east-1:123456789012:security-group/sg-1"; got != want {
		t.Errorf("got %s", got)
	}
}
