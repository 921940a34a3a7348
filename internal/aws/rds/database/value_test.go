package database

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// Values that are asked for go over those that wait. Asking for what a record has takes a waiting
// change back.
func TestValuesThatWait(t *testing.T) {
	have := spec.Values{
		Class: "db.t3.micro", Name: "db", Disk: &spec.Storage{Type: "gp3", GiB: 20}, MultiAZ: wire.Some(false), BackupRetention: wire.Some(1),
		IAMAuth: wire.Some(false), CACertificate: "howdah-ca",
	}
	for _, c := range []struct {
		name         string
		waiting      *spec.Values
		wanted, left spec.Values
	}{
		{name: "nothing"},
		{name: "the first", wanted: spec.Values{Class: "db.m5.large"}, left: spec.Values{Class: "db.m5.large"}},
		{
			name: "a second one beside it", waiting: &spec.Values{Class: "db.m5.large"}, wanted: spec.Values{MultiAZ: wire.Some(true)},
			left: spec.Values{Class: "db.m5.large", MultiAZ: wire.Some(true)},
		},
		{
			name: "another one in its place", waiting: &spec.Values{Disk: &spec.Storage{Type: "gp3", GiB: 30}},
			wanted: spec.Values{Disk: &spec.Storage{Type: "gp3", GiB: 40}}, left: spec.Values{Disk: &spec.Storage{Type: "gp3", GiB: 40}},
		},
		{
			name: "all of them back", waiting: &spec.Values{
				Class: "db.m5.large", Name: "other", Disk: &spec.Storage{Type: "gp3", GiB: 30}, MultiAZ: wire.Some(true), BackupRetention: wire.Some(0),
				IAMAuth: wire.Some(true), CACertificate: "howdah-ca-g2", RotationRestart: true,
			}, wanted: have,
		},
		{
			name: "a restart goes with its authority", waiting: &spec.Values{CACertificate: "howdah-ca-g2", RotationRestart: true},
			wanted: spec.Values{CACertificate: "howdah-ca-g3"}, left: spec.Values{CACertificate: "howdah-ca-g3"},
		},
	} {
		if diff := cmp.Diff(c.left, differing(merge(c.waiting, c.wanted), have)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if OrNil(spec.Values{}) != nil || OrNil(have) == nil {
		t.Error("OrNil")
	}
}

// Storage grows by a tenth at least. Another type forgets what belonged to the one before.
func TestStorageThatIsAskedFor(t *testing.T) {
	plain, fast := spec.Storage{Type: "gp2", GiB: 100}, spec.Storage{Type: "io1", GiB: 100, IOPS: 1000}
	for _, c := range []struct {
		name       string
		have       spec.Storage
		size, iops *int32
		kind       *string
		want       *spec.Storage // nil: it is refused
	}{
		{name: "a little more", have: plain, size: wire.Some[int32](101), want: &spec.Storage{Type: "gp2", GiB: 110}},
		{name: "the same", have: plain, size: wire.Some[int32](100), want: &plain},
		{name: "less", have: plain, size: wire.Some[int32](99)},
		{name: "the size alone, with IOPS", have: fast, size: wire.Some[int32](200)},
		{name: "both", have: fast, size: wire.Some[int32](200), iops: wire.Some[int32](2000), want: &spec.Storage{Type: "io1", GiB: 200, IOPS: 2000}},
		{name: "another type", have: fast, kind: wire.Some("gp2"), want: &plain},
	} {
		got, err := WantedDisk(c.have, c.size, c.iops, nil, c.kind)
		if c.want == nil && err == nil || c.want != nil && (err != nil || *got != *c.want) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	if got, err := WantedDisk(fast, nil, nil, nil, nil); got != nil || err != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

// Only what differs is shown; what was shown before stays.
func TestOnlyADifferenceIsShown(t *testing.T) {
	size, iops, throughput, kind := wire.Some[int32](7), (*int32)(nil), (*int32)(nil), (*string)(nil)
	ShowDisk(spec.Storage{Type: "io1", GiB: 100, IOPS: 1000}, spec.Storage{Type: "gp3", GiB: 100, MiBps: 125}, &size, &iops, &throughput, &kind)
	if *size != 7 || *iops != 0 || *throughput != 125 || *kind != "gp3" {
		t.Errorf("%d %d %d %s", *size, *iops, *throughput, *kind)
	}
}
