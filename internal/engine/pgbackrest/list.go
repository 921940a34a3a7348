package pgbackrest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
	"howdah/internal/model/lsn"
)

// stanza is what pgBackRest's info says of one database, as far as it is of use.
type stanza struct {
	Archive []struct {
		Min string `json:"min"`
		Max string `json:"max"`
	} `json:"archive"`
	Backup []set  `json:"backup"`
	DB     []db   `json:"db"`
	Status status `json:"status"`
}

type db struct {
	ID       int         `json:"id"`
	SystemID json.Number `json:"system-id"`
	Version  string      `json:"version"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// set is a backup.
type set struct {
	Annotation map[string]string `json:"annotation"`
	Archive    struct {
		Stop string `json:"stop"`
	} `json:"archive"`
	Database struct {
		ID int `json:"id"`
	} `json:"database"`
	Error bool `json:"error"`
	Info  struct {
		Repository struct {
			Delta int64 `json:"delta"`
		} `json:"repository"`
		Size int64 `json:"size"`
	} `json:"info"`
	Label string `json:"label"`
	LSN   struct {
		Start lsn.LSN `json:"start"`
		Stop  lsn.LSN `json:"stop"`
	} `json:"lsn"`
	Prior     string   `json:"prior"`
	Reference []string `json:"reference"`
	Timestamp struct {
		Start int64 `json:"start"`
		Stop  int64 `json:"stop"`
	} `json:"timestamp"`
	Type string `json:"type"`
}

// The codes of a stanza's status that tell of no failure.
const (
	statusOK        = 0
	statusNoStanza  = 1
	statusNoBackups = 2
)

// ParseList reads what info prints. A database of which the repository has nothing has an empty
// list.
func (e Engine) ParseList(out []byte) (backup.Listing, error) {
	var all []stanza
	if err := json.Unmarshal(out, &all); err != nil {
		return backup.Listing{}, fmt.Errorf("read what pgBackRest lists: %w", err)
	}
	var l backup.Listing
	for _, s := range all {
		if c := s.Status.Code; c != statusOK && c != statusNoStanza && c != statusNoBackups {
			return backup.Listing{}, fmt.Errorf("list backups: %s", s.Status.Message) //nolint:err113 // its own words
		}
		for _, a := range s.Archive {
			if a.Min != "" && (l.FirstWAL == "" || a.Min < l.FirstWAL) {
				l.FirstWAL = a.Min
			}
			l.LastWAL = max(l.LastWAL, a.Max)
		}
		whole := map[string][]string{}
		for _, b := range s.Backup { // each comes after those that it needs
			whole[b.Label] = b.needs(whole)
			info, err := b.info(s.DB)
			if err != nil {
				return backup.Listing{}, fmt.Errorf("read what pgBackRest lists of %s: %w", b.Label, err)
			}
			info.Needs = whole[b.Label]
			l.Backups = append(l.Backups, info)
		}
	}
	slices.SortStableFunc(l.Backups, func(a, b backup.Info) int { return a.Stop.Compare(b.Stop) })
	return l, nil
}

func (b set) info(dbs []db) (backup.Info, error) {
	info := backup.Info{
		Label: b.Label, Kind: backupmodel.Incremental, Operation: b.Annotation[annotation],
		// Times are cut off at the second. The backup has what was committed in the second of its end.
		Start: time.Unix(b.Timestamp.Start, 0).UTC(), Stop: time.Unix(b.Timestamp.Stop+1, 0).UTC(),
		StartLSN: b.LSN.Start, StopLSN: b.LSN.Stop,
		Size: b.Info.Size, Stored: b.Info.Repository.Delta, Damaged: b.Error,
	}
	if b.Type == "full" {
		info.Kind = backupmodel.Full
	}
	if len(b.Archive.Stop) >= 8 {
		timeline, err := strconv.ParseUint(b.Archive.Stop[:8], 16, 31)
		if err != nil {
			return info, fmt.Errorf("timeline of %q: %w", b.Archive.Stop, err)
		}
		info.Timeline = int(timeline)
	}
	for _, d := range dbs {
		if d.ID == b.Database.ID {
			info.SystemID = d.SystemID.String()
			major, err := strconv.Atoi(strings.Split(d.Version, ".")[0])
			if err != nil {
				return info, fmt.Errorf("version %q: %w", d.Version, err)
			}
			info.Major = major
		}
	}
	return info, nil
}

// needs are the backups whose files are a part of this one, the one before it, and what that one
// needs, as known has it: pgBackRest removes what stands on one that it removes.
func (b set) needs(known map[string][]string) []string {
	needs := slices.Clone(b.Reference)
	if b.Prior != "" {
		needs = append(append(needs, b.Prior), known[b.Prior]...)
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}
