package jobs

import (
	"slices"
	"testing"

	"howdah/internal/engine/backup"
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
