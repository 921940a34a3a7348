package clitest

import (
	"time"

	"howdah/internal/admin"
)

// fakeOperations are one of each state.
func fakeOperations() []admin.Operation {
	began := Noon.Add(-2 * time.Hour)
	about := func(p admin.Operation) admin.Operation {
		p.Database, p.ResourceID, p.Account, p.Region, p.Began, p.By = "orders", "db-1", "123456789012", "us-east-1", began, "s1-ABCDEFGH"
		p.Deadline = began.Add(6 * time.Hour)
		return p
	}
	late := about(admin.Operation{
		ID: "upgrade-3", Kind: "upgrade", State: "running", Step: "check", Late: true, Failures: 4, Trouble: "the host zone-b does not answer",
		StepBegan: began.Add(time.Minute), Next: Noon.Add(time.Minute), Excludes: []string{"restart", "change"}, Done: 3, Unit: "databases",
	})
	late.Deadline, late.Database = Noon.Add(-time.Hour), "shop"
	return []admin.Operation{
		about(admin.Operation{ID: "copy-17", Kind: "copy", State: "running", Step: "fill", StepBegan: began.Add(time.Second), Done: 3750, Of: 10000, Unit: "parts of files", Jobs: []admin.OperationJob{{
			Host: "zone-b", Kind: "copy", State: "running", Done: 3 << 30, Of: 8 << 30, Unit: "bytes", Asked: began.Add(time.Second), Said: Noon.Add(-2 * time.Second),
		}}}),
		late,
		about(admin.Operation{ID: "copy-16", Kind: "copy", State: "undoing", Step: "fill", StepBegan: Noon, Done: 2 << 20, Of: 3 << 20, Unit: "bytes of files", Reason: "cancelled by TESTKEY"}),
		about(admin.Operation{ID: "copy-15", Kind: "copy", State: "done", Ended: true, EndedAt: began.Add(90 * time.Second), Done: 3, Of: 3, Unit: "files"}),
		about(admin.Operation{
			ID: "copy-14", Kind: "copy", State: "failed", Ended: true, EndedAt: began.Add(61 * time.Minute), Reason: "no space is left on zone-c",
			Left: []string{"fill"},
		}),
		about(admin.Operation{ID: "copy-13", Kind: "copy", State: "cancelled", Ended: true, EndedAt: began.Add(time.Minute), Reason: "cancelled by TESTKEY"}),
	}
}
