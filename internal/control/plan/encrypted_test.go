package plan

import (
	"strings"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// A member of a database whose storage is encrypted goes to a host that can, and is told.
func TestEncryptedStorageGoesToHostsThatCan(t *testing.T) {
	in := Input{
		Want: Database{ID: "db-1", Major: 15, State: member.Running, Encrypted: true, Seats: []Seat{{}}},
		Hosts: []Host{
			{Name: "a", Zone: "a", Alive: true, Majors: []int{15}, WhyPlain: "no fscrypt"},
			{Name: "b", Zone: "b", Alive: true, Majors: []int{15}, Committed: 1 << 40, Memory: 1 << 41},
		},
	}
	got := Next(in).Layout.Members
	if len(got) != 1 || got[0].Host != "b" {
		t.Fatalf("it went to %+v", got)
	}
	if a := Assign(in.Want, Layout{}, got[0], 0); !a.Encrypted {
		t.Error("its host is not told")
	}
	in.Hosts = in.Hosts[:1]
	if err := CanPlace(in); err == nil || !strings.Contains(err.Error(), "a cannot encrypt storage: no fscrypt") {
		t.Errorf("where no host can: %v", err)
	}
	in.Want.Encrypted = false
	if err := CanPlace(in); err != nil {
		t.Errorf("one that is not encrypted: %v", err)
	}
}

// What an earlier release took down as encrypted promises nothing.
func TestOnlyAKeyEncrypts(t *testing.T) {
	i := spec.Instance{Common: spec.Common{ResourceID: "db-1", Encrypted: true, KMSKey: "key"}, Class: "db.t3.micro"}
	if ForInstance(i, Links{}).Encrypted {
		t.Error("by the word of an earlier release")
	}
	i.StorageKey = "key"
	if !ForInstance(i, Links{}).Encrypted || !ForCluster(spec.Cluster{Common: i.Common}, nil, Links{}).Encrypted {
		t.Error("not with a key")
	}
}
