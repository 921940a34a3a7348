package clitest

import (
	"log/slog"
	"testing"
	"time"

	"howdah/internal/aws/audit"
	"howdah/internal/identity/home"
)

// WriteAudit fills the audit log of a home.
func WriteAudit(t *testing.T, h *home.Home) {
	t.Helper()
	l := audit.Open(h.AuditDir(), slog.New(slog.DiscardHandler))
	defer l.Close()
	for _, r := range []audit.Record{
		{
			Time: Noon.Add(-2 * time.Hour), RequestID: "id-1", AccessKey: "HOWDAH0123456789ABCD", User: "arn:aws:iam::123456789012:user/ci", Account: "123456789012",
			Region: "us-west-2", Service: "rds", Action: "DeleteDBInstance", Parameters: map[string]string{"DBInstanceIdentifier": "orders", "SkipFinalSnapshot": "true"},
			Source: "10.0.0.7", Status: 403, Code: "AccessDenied", Millis: 1,
		},
		{
			Time: Noon.Add(-time.Minute), RequestID: "id-2", AccessKey: "TESTKEY", User: "arn:aws:iam::123456789012:root", Account: "123456789012",
			Region: "us-west-2", Service: "rds", Action: "CreateDBInstance", Parameters: map[string]string{"DBInstanceIdentifier": "two\x1b[31m words", "MasterUserPassword": "****"},
			Source: "127.0.0.1", UserAgent: "aws-cli/2", Status: 200, Millis: 12,
		},
		{Time: Noon.Add(-time.Second), RequestID: "id-3", AccessKey: "NOKEY", Source: "10.0.0.9", Status: 403, Code: "InvalidClientTokenId", Unrecorded: 7},
		{
			Time: Noon.Add(-time.Second), RequestID: "id-5", Account: "123456789012", Region: "us-west-2", ByLink: true, Service: "sns", Action: "ConfirmSubscription",
			Parameters: map[string]string{"Token": "****"}, Source: "10.0.0.8", Status: 200, Millis: 1,
		},
		{
			Time: Noon, RequestID: "id-4", AccessKey: "TESTKEY", User: "arn:aws:iam::123456789012:root", Account: "123456789012", Region: "us-west-2",
			Service: "howdah", Action: "drain", Parameters: map[string]string{"host": "zone-b", "dry_run": "true"}, Source: "127.0.0.1", Status: 200, Millis: 2,
		},
	} {
		l.Write(r)
	}
}
