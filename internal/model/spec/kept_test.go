package spec

import (
	"fmt"
	"strings"
	"testing"
)

func TestCheckSubnetGroup(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "my group.1_x-": true, "default": false, "": false, "Upper": false, " a": false, "a ": false, "a/b": false,
		strings.Repeat("a", 255): true, strings.Repeat("a", 256): false,
	} {
		if err := CheckSubnetGroup(name, "text"); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, text := range []string{"", " ", strings.Repeat("a", 1025)} {
		if CheckSubnetGroup("a", text) == nil {
			t.Errorf("the description %.10q was taken", text)
		}
	}
}

func TestZonesOfASubnetGroup(t *testing.T) {
	for _, tt := range []struct{ subnets, want string }{
		{"", "[]"},
		{"b:subnet-b", "[b]"},
		{"c:subnet-c a:subnet-a", "[a c]"},
		// A subnet that is not the home's may be anywhere.
		{"a:subnet-a b:subnet-0f3a", "[]"},
		{"a:subnet-b", "[]"},
	} {
		g := SubnetGroup{}
		for _, text := range strings.Fields(tt.subnets) {
			zone, id, _ := strings.Cut(text, ":")
			g.Subnets = append(g.Subnets, Subnet{ID: id, Zone: zone})
		}
		if got := fmt.Sprint(g.Zones()); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.subnets, got, tt.want)
		}
	}
}

func TestCheckOptionGroup(t *testing.T) {
	for name, good := range map[string]bool{
		"a": true, "a-1": true, "default:postgres-15": false, "": false, "1a": false, "a-": false, "a--b": false, "a_b": false,
		strings.Repeat("a", 255): true, strings.Repeat("a", 256): false,
	} {
		if err := CheckOptionGroup("OptionGroupName", name, "text"); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCheckSubnetAndRole(t *testing.T) {
	for id, good := range map[string]bool{"subnet-a": true, "subnet-0f3a": true, "subnet-": false, "a": false, "": false, "subnet-a b": false} {
		if CheckSubnet(id) != good {
			t.Errorf("%q", id)
		}
	}
	for arn, good := range map[string]bool{
		"arn:aws:iam::123456789012:role/a": true, "arn:aws-cn:iam::123456789012:role/path/a": true, "arn:aws:iam::1:role/a": false,
		"arn:aws:iam::123456789012:user/a": false, "": false, "arn:aws:iam::123456789012:role/": false,
	} {
		if err := CheckRole(arn); (err == nil) != good {
			t.Errorf("%q: %v", arn, err)
		}
	}
}
