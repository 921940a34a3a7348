package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Who may connect, and the edges between, are told as one list; everyone stays
// everyone, and nobody is nobody but the edges.
func TestAssignTellsWhoMayConnect(t *testing.T) {
	for _, tt := range []struct {
		name                 string
		allow, between, want []string
	}{
		{"everyone", nil, []string{"127.9.0.1/32"}, nil},
		{"some", []string{"10.0.0.0/8"}, nil, []string{"10.0.0.0/8"}},
		{"some, through an edge", []string{"10.0.0.0/8"}, []string{"127.9.0.1/32"}, []string{"10.0.0.0/8", "127.9.0.1/32"}},
		{"nobody", []string{}, nil, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := Database{ID: "db", Allow: tt.allow, Between: tt.between, Seats: []Seat{{}}}
			got := Assign(want, Layout{}, Placed{Name: "m1"}, 0)
			if diff := cmp.Diff(tt.want, got.Allow); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A member is told of the authority of its seat, and of none where that is the home's
// own: what was told before there were others stays as it is.
func TestAssignTellsTheAuthority(t *testing.T) {
	for chosen, want := range map[string][2]string{
		"": {}, "howdah-ca": {}, "strange": {},
		"howdah-ca-g2":      {"howdah-ca-g2", ""},
		"rds-ca-rsa4096-g1": {"rds-ca-rsa4096-g1", "rsa2048"},
		"rds-ca-ecc384-g3":  {"rds-ca-ecc384-g3", "ec384"},
	} {
		db := Database{ID: "db", Seats: []Seat{{Key: "a"}, {Key: "b", Authority: chosen}}}
		got := Assign(db, Layout{}, Placed{Name: "m2", Seat: "b"}, 0)
		if got.Authority != want[0] || got.ServerKey != want[1] {
			t.Errorf("%q: told %q with a key %q", chosen, got.Authority, got.ServerKey)
		}
		if other := Assign(db, Layout{}, Placed{Name: "m1", Seat: "a"}, 0); other.Authority != "" {
			t.Errorf("%q: another seat is told %q", chosen, other.Authority)
		}
	}
}
