package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"howdah/internal/engine/backup"
	"howdah/internal/host/job"
	model "howdah/internal/model/backup"
)

func TestWhatNobodyNeeds(t *testing.T) {
	full := func(label string) backup.Info { return backup.Info{Label: label, Kind: model.Full} }
	incr := func(label string, needs ...string) backup.Info {
		return backup.Info{Label: label, Kind: model.Incremental, Needs: needs}
	}
	chain := backup.Listing{Backups: []backup.Info{
		full("f1"), incr("i1", "f1"), incr("i2", "f1", "i1"), full("f2"), incr("j1", "f2"), incr("j2", "f2", "j1"),
	}}
	for name, c := range map[string]struct {
		of   backup.Listing
		keep []string
		gone []string
	}{
		"nothing there":               {backup.Listing{}, []string{"x"}, nil},
		"all kept":                    {chain, []string{"i2", "j2"}, nil},
		"a chain in the middle":       {chain, []string{"i1", "j2"}, []string{"i2"}},
		"an old chain":                {chain, []string{"j1"}, []string{"f1", "i1", "i2", "j2"}},
		"the newest full one stays":   {chain, nil, []string{"f1", "i1", "i2", "j1", "j2"}},
		"only old ones are needed":    {chain, []string{"f1"}, []string{"i1", "i2", "j1", "j2"}},
		"a label that nobody knows":   {chain, []string{"i2", "j2", "z"}, nil},
		"an orphan of an interrupted": {backup.Listing{Backups: []backup.Info{full("f1"), incr("i1", "f1")}}, []string{"f1"}, []string{"i1"}},
	} {
		if gone := unneeded(c.of, c.keep); !slices.Equal(gone, c.gone) {
			t.Errorf("%s: %q go, want %q", name, gone, c.gone)
		}
	}
}

// TestWALIsCountedByWhatStays: an orphan that the engine cannot be without does not cost the WAL of
// what is promised.
func TestWALIsCountedByWhatStays(t *testing.T) {
	full := func(label string) backup.Info { return backup.Info{Label: label, Kind: model.Full} }
	all := backup.Listing{Backups: []backup.Info{full("f1"), full("f2"), full("f3"), full("f4")}}
	for name, c := range map[string]struct {
		removed, keep []string
		most, want    int
	}{
		"all are known":                {nil, []string{"f1", "f2", "f3", "f4"}, 2, 2},
		"a newer orphan stays":         {nil, []string{"f3"}, 1, 2},
		"orphans in the middle":        {[]string{"f3"}, []string{"f1", "f2"}, 2, 3},
		"some of them are not there":   {nil, []string{"f4", "z"}, 2, 4},
		"nothing is to stay":           {[]string{"f1", "f2", "f3"}, nil, 1, 1},
		"the older ones only need own": {[]string{"f2"}, []string{"f1", "f3", "f4"}, 1, 1},
	} {
		if got := withWAL(all, c.removed, c.keep, c.most); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestAListThatWasLost costs nothing else.
func TestAListThatWasLost(t *testing.T) {
	one := backup.Listing{Backups: []backup.Info{{Label: "f1", Kind: model.Full}}}
	if err := lost(backup.Listing{}, []string{"f1"}); err == nil {
		t.Error("nothing is listed, and that is taken for the truth")
	}
	if err := lost(one, []string{"f0"}); err == nil {
		t.Error("something else is listed, and that is taken for the truth")
	}
	for _, keep := range [][]string{nil, {"f1"}, {"f1", "z"}} {
		if err := lost(one, keep); err != nil {
			t.Errorf("%q: %v", keep, err)
		}
	}
}

// TestAListThatFits: what does not fit into a result is told the next time.
func TestAListThatFits(t *testing.T) {
	all := backup.Listing{}
	for n := range 200 {
		b := backup.Info{Label: fmt.Sprintf("20261124-%06dF", n), Kind: model.Full, Operation: "auto-db-abcdefghijklmnopqrstuvwxyz-202611240300"}
		for range n % 60 {
			b.Needs = append(b.Needs, "20261124-000000F_20261124-000000I")
		}
		all.Backups = append(all.Backups, b)
	}
	args := model.ListJob{Database: "db-A", Repository: "main"}
	for rounds := 0; ; rounds++ {
		l := listed(args, all)
		text, err := json.Marshal(l)
		if err != nil || len(text) > job.MostResult || len(l.Backups) == 0 || rounds > 200 {
			t.Fatalf("%d bytes, %d backups, %v", len(text), len(l.Backups), err)
		}
		for _, b := range l.Backups {
			args.Known = append(args.Known, b.Label)
		}
		if !l.More {
			break
		}
	}
	if len(args.Known) != 200 {
		t.Errorf("%d were told", len(args.Known))
	}
}
