package server

import (
	"cmp"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// servedBy is the report of the member that clients of an instance meet.
func servedBy(i spec.Instance, facts plan.Facts) member.Report {
	var found member.Report
	for _, m := range facts.Layout.Members {
		if m.Leaving || i.Cluster != "" && m.Seat != i.ResourceID {
			continue
		}
		report := facts.Reports[member.ID(facts.Want.ID, m.Name)]
		if found.ID == "" || m.Name == facts.Leader || i.Cluster != "" && report.Ready {
			found = report
		}
	}
	return found
}

// certificateShown is what the certificate that a server shows says; nil when none was
// seen yet.
func certificateShown(report member.Report) *rds.CertificateDetails {
	if report.CertUntil.IsZero() {
		return nil
	}
	return &rds.CertificateDetails{CAIdentifier: wire.Some(cmp.Or(report.Authority, spec.HomeAuthority)), ValidTill: wire.Some(report.CertUntil.UTC())}
}

// showCertificate shows the certificate as clients see it, and one of another
// authority that is wanted as pending, be it that it waits for the window or that the
// server does not show it yet.
func showCertificate(out *rds.DBInstance, i spec.Instance, facts plan.Facts) {
	wanted := i.CACertificate
	out.CertificateDetails = certificateShown(servedBy(i, facts))
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

// showClusterCertificate is showCertificate for a Multi-AZ DB cluster: that of its
// instances, and as long as not all have the one that is wanted, one of the others.
func (l *sight) showClusterCertificate(out *rds.DBCluster, pending *rds.ClusterPendingModifiedValues, c spec.Cluster, facts plan.Facts) {
	if !c.MultiAZ() {
		return
	}
	for _, i := range l.InstancesOf(c.ResourceID) {
		shown := certificateShown(servedBy(i, facts))
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
