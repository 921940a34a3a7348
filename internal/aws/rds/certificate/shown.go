package certificate

import (
	"cmp"

	"howdah/api/rds"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// servedBy is the report of the member that clients of an instance meet.
func servedBy(i spec.Instance, facts plan.Facts) member.Report {
	var found member.Report
	for m := range look.PlacesOf(i, facts) {
		report := facts.Reports[member.ID(facts.Want.ID, m.Name)]
		if found.ID == "" || m.Name == facts.Leader || i.Cluster != "" && report.Ready {
			found = report
		}
	}
	return found
}

// details is what the certificate that a server shows says; nil when none was seen yet.
func details(report member.Report) *rds.CertificateDetails {
	if report.CertUntil.IsZero() {
		return nil
	}
	return &rds.CertificateDetails{CAIdentifier: wire.Some(cmp.Or(report.Authority, spec.HomeAuthority)), ValidTill: wire.Some(report.CertUntil.UTC())}
}

// Show shows the certificate of an instance as clients see it. One of another authority that
// is wanted is shown as pending: it waits for the window, or the server does not show it yet.
func Show(out *rds.DBInstance, i spec.Instance, facts plan.Facts) {
	wanted := i.CACertificate
	out.CertificateDetails = details(servedBy(i, facts))
	if out.CertificateDetails != nil {
		out.CACertificateIdentifier = out.CertificateDetails.CAIdentifier
	}
	if i.Pending != nil && i.Pending.CACertificate != "" {
		wanted = i.Pending.CACertificate
	}
	if wanted != *out.CACertificateIdentifier {
		out.PendingModifiedValues.CACertificateIdentifier = wire.Some(wanted)
	}
}

// ShowOfCluster is Show for a Multi-AZ DB cluster: it shows the certificate of its instances,
// and as long as not all of them have the one that is wanted, one of the others.
func ShowOfCluster(l *look.Look, out *rds.DBCluster, pending *rds.ClusterPendingModifiedValues, c spec.Cluster, facts plan.Facts) {
	if !c.MultiAZ() {
		return
	}
	for _, i := range l.InstancesOf(c.ResourceID) {
		shown := details(servedBy(i, facts))
		if shown != nil && (out.CertificateDetails == nil || *shown.CAIdentifier != c.CACertificate) {
			out.CertificateDetails = shown
		}
	}
	wanted := c.CACertificate
	if c.Pending != nil && c.Pending.CACertificate != "" {
		wanted = c.Pending.CACertificate
	}
	if d := out.CertificateDetails; d != nil && *d.CAIdentifier != wanted {
		pending.CertificateDetails = &rds.CertificateDetails{CAIdentifier: wire.Some(wanted)}
	}
}
