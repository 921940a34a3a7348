package catalogue

import (
	"testing"

	"howdah/internal/model/spec"
)

// TestLimitsAreThoseOfRequests: what is offered is accepted, and what is beyond it is not.
func TestLimitsAreThoseOfRequests(t *testing.T) {
	for _, kind := range storageOf[spec.Postgres] {
		l := storageLimits(kind)
		for _, test := range []struct {
			gib, iops int
			good      bool
		}{
			{l.low, l.minIOPS, true}, {l.high, l.maxIOPS, true}, {l.low - 1, l.minIOPS, false}, {l.high + 1, l.minIOPS, false},
		} {
			if _, err := spec.CheckStorage(spec.Storage{Type: kind, GiB: test.gib, IOPS: test.iops}); (err == nil) != test.good {
				t.Errorf("%s, %d GiB, %d IOPS: %v", kind, test.gib, test.iops, err)
			}
		}
	}
}
