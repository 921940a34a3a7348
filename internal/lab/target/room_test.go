package target

import (
	"errors"
	"strings"
	"testing"

	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/testkit/pgtest"
)

func TestWhetherThereIsRoom(t *testing.T) {
	t.Parallel()
	const gb = 1 << 30
	for _, tt := range []struct {
		what   string
		free   []int64
		shared bool
		need   int64
		wanted experiment.Wanted
		says   string // "": there is
	}{
		{"all fits", []int64{10 * gb, 10 * gb, 10 * gb}, true, 2 * gb, experiment.Wanted{Storage: 20, MultiAZ: true, Standbys: 1}, ""},
		{"its storage is too small", []int64{90 * gb}, true, 6 * gb, experiment.Wanted{Storage: 5}, "storage of 5.0 GiB"},
		{"three members on one disk", []int64{5 * gb, 5 * gb, 5 * gb}, true, 2 * gb, experiment.Wanted{Storage: 20, MultiAZ: true, Standbys: 1}, "3 members take about 6.0 GiB, and this machine's disk has 5.0 GiB"},
		{"three members on disks of their own", []int64{5 * gb, 5 * gb, 5 * gb}, false, 2 * gb, experiment.Wanted{Storage: 20, MultiAZ: true, Standbys: 1}, ""},
		{"one host is full", []int64{5 * gb, 1 * gb, 5 * gb}, false, 2 * gb, experiment.Wanted{Storage: 20, Standbys: 2}, "2 of 3 hosts"},
		{"one host is full, and is not needed", []int64{5 * gb, 1 * gb, 5 * gb}, false, 2 * gb, experiment.Wanted{Storage: 20, Standbys: 1}, ""},
		{"more members than hosts", []int64{9 * gb, 9 * gb}, false, 2 * gb, experiment.Wanted{Storage: 20, Standbys: 4}, ""},
		{"no host", nil, false, 2 * gb, experiment.Wanted{Storage: 20}, ""},
	} {
		err := room(tt.free, tt.shared, tt.need, tt.wanted)
		if tt.says == "" && err != nil || tt.says != "" && (!errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

// The disk of a server on this machine is asked, where the role may know which one it is.
func TestRoomOfAServer(t *testing.T) {
	t.Parallel()
	s := pgtest.Start(t, pgtest.Options{})
	a := given(t, s)
	if err := a.Room(t.Context(), 1, nil); err != nil {
		t.Error(err)
	}
	err := a.Room(t.Context(), 1<<60, nil)
	if !errors.Is(err, ErrRoom) || !strings.Contains(err.Error(), "take about 1073741825.0 GiB, and the server's disk has ") {
		t.Error(err)
	}
	s.Exec("CREATE ROLE anybody LOGIN")
	a.Server, err = address.Parse("postgresql://anybody@"+s.Addr+"/"+s.Database+"?sslmode=disable", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Room(t.Context(), 1<<60, nil); err != nil {
		t.Errorf("a role that may not know the directory: %v", err)
	}
}
