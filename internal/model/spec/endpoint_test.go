package spec

import (
	"slices"
	"testing"
)

func TestEndpointSeats(t *testing.T) {
	instances := []Instance{{Common: Common{ResourceID: "i1"}}, {Common: Common{ResourceID: "i2"}}, {Common: Common{ResourceID: "i3", Deleting: true}}}
	for _, c := range []struct {
		name     string
		endpoint Endpoint
		want     []string
		readers  bool
	}{
		{"all", Endpoint{Type: "ANY"}, []string{"i1", "i2"}, false},
		{"readers", Endpoint{Type: "READER"}, []string{"i1", "i2"}, true},
		{"static", Endpoint{Static: []string{"i2", "i3", "i9"}}, []string{"i2"}, false},
		{"excluded", Endpoint{Excluded: []string{"i1"}}, []string{"i2"}, false},
	} {
		seats, readers := c.endpoint.Seats(instances)
		if !slices.Equal(seats, c.want) || readers != c.readers {
			t.Errorf("%s: %q, %v", c.name, seats, readers)
		}
	}
}
