package certificate

import (
	"testing"

	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// Clients of an instance with a standby meet the primary's certificate, and those of a member of
// a cluster its own.
func TestTheCertificateThatClientsMeet(t *testing.T) {
	report := func(name, by string) member.Report { return member.Report{ID: "d." + name, Authority: by, Ready: true} }
	facts := plan.Facts{
		Want: plan.Database{ID: "d"}, Leader: "m2",
		Layout:  plan.Layout{Members: []plan.Placed{{Name: "m1", Seat: "a"}, {Name: "m2", Seat: "b"}, {Name: "m3", Seat: "a", Leaving: true}}},
		Reports: map[string]member.Report{"d.m1": report("m1", "x"), "d.m2": report("m2", "y"), "d.m3": report("m3", "z")},
	}
	if got := servedBy(spec.Instance{}, facts); got.Authority != "y" {
		t.Errorf("of the primary: %+v", got)
	}
	member := spec.Instance{Cluster: "c"}
	member.ResourceID = "a"
	if got := servedBy(member, facts); got.Authority != "x" {
		t.Errorf("of a member of a cluster: %+v", got)
	}
	if details(report("m1", "x")) != nil {
		t.Error("a certificate that nobody saw is shown")
	}
}
