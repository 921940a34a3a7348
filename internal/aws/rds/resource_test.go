package rds

import (
	"strings"
	"testing"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// A policy may allow the logs of one instance only.
func TestLogsByPolicy(t *testing.T) {
	c := front.Call{Scope: spec.Scope{Account: "123456789012", Region: "us-east-1"}, Action: "rds:DownloadDBLogFilePortion"}
	in := &rds.DownloadDBLogFilePortionMessage{DBInstanceIdentifier: wire.Some("Orders")}
	if got := strings.Join(resources(c, in), " "); got != "arn:aws:rds:us-east-1:123456789012:db:orders" {
		t.Errorf("it names %s", got)
	}
}
