package plan

import (
	"testing"

	"howdah/internal/model/spec"
)

// The last copy of a cluster without instances has the memory of the largest class that the cluster
// had, while its final snapshot is made. Else it does not run.
func TestTheLastCopyOfACluster(t *testing.T) {
	c := spec.Cluster{Common: spec.Common{ResourceID: "cluster-1", Major: 15, SharedMemory: 2 << 30}}
	if d := ForCluster(c, nil, Links{}); d.Last != nil {
		t.Errorf("%+v", d.Last)
	}
	c.Final = "last"
	d := ForCluster(c, nil, Links{})
	if d.Last == nil || seatFor(d, Placed{Seat: "gone"}).Limits.MemoryBytes != 2<<30 {
		t.Errorf("%+v", d.Last)
	}
}
