package spec

import (
	"strings"
	"testing"

	"howdah/internal/model/param"
)

func TestGroupNames(t *testing.T) {
	for name, code := range map[string]string{
		"a": "", "mine-2": "", strings.Repeat("a", 255): "", strings.Repeat("a", 256): value,
		"": value, "2a": value, "a-": value, "a--b": value, "a.b": value, "a b": value, "é": value,
	} {
		if err := CheckGroupName("DBParameterGroupName", name); !refusedWith(err, code) {
			t.Errorf("%q: %v", name, err)
		}
	}
	g := ParameterGroup{Scope: Scope{Account: "1", Region: "r"}, Kind: param.Cluster, Name: "n"}
	if g.ARN() != "arn:aws:rds:r:1:cluster-pg:n" {
		t.Error(g.ARN())
	}
}
