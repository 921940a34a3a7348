package backup

import (
	"fmt"
	"testing"
	"time"

	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/model/operation"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit"
)

// download begins a download of a snapshot, as an operator does.
func (s *site) download(i spec.Instance, id string, shot backup.Snapshot, asked backup.Downloading) string {
	s.t.Helper()
	args := backup.DownloadArgs{Snapshot: shot.Name, Repository: shot.Repository, Label: shot.Label, Encrypted: i.StorageKey != "", Downloading: asked}
	r, err := operation.New(id, backup.Download, aboutOf(i), args, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	s.put(state.Swap(state.Operation(id), 0, r))
	return id
}

// comes waits until an operation is in a step.
func (s *site) comes(id, step string) operation.Record {
	s.t.Helper()
	testkit.Eventually(s.t, 20*time.Second, func() error {
		if r := s.operation(id); r.Step != step || r.State.Ended() {
			return fmt.Errorf("%s is %+v", id, r)
		}
		return nil
	})
	return s.operation(id)
}

func TestADownload(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	shot := s.shot("first")
	id := s.download(i, "download-1", shot, backup.Downloading{Form: backup.Dump, Only: "shop"})
	r := s.comes(id, backup.StepServe)
	if r.Notes[backup.NoteHost] != "zone-b" || r.Notes[backup.NoteJob] == "" || r.Notes[NoteLabel] != shot.Label {
		t.Errorf("%+v", r.Notes)
	}
	asked := s.yard.downloads[0]
	if asked.Form != backup.Dump || asked.Only != "shop" || asked.Label != shot.Label || asked.Major != 15 || asked.Room != 300 || asked.Encrypted {
		t.Errorf("asked for %+v", asked)
	}

	// What is being fetched stays in the repository, also if its snapshot is deleted.
	s.put(state.Delete(state.Snapshot(shop.Account, shop.Region, "first")))
	if used := s.backups.look().holdings(i.ResourceID, "main").Used; len(used) != 1 || used[0] != shot.Label {
		t.Errorf("used are %q", used)
	}
	s.yard.set(func() { s.yard.fetched = true })
	s.ends(id, operation.Done)
	s.clean(i.ResourceID)
	if used := s.backups.look().holdings(i.ResourceID, "main").Used; len(used) != 0 {
		t.Errorf("used are %q", used)
	}
}

// TestADownloadGoesToAnotherHost if the one that has it is lost, and ends if nobody fetches it.
func TestADownloadGoesToAnotherHost(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", nil)
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	id := s.download(i, "download-1", s.shot("first"), backup.Downloading{Form: backup.DataDirectory})
	s.comes(id, backup.StepServe)
	s.yard.set(func() { s.yard.fails["zone-b"] = "its disk is nearly full" })
	testkit.Eventually(t, 20*time.Second, func() error {
		if r := s.operation(id); r.Step != backup.StepServe || r.Notes[backup.NoteHost] != "zone-a" {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	// An agent that was started again makes it ready again.
	s.yard.set(func() { s.yard.slow = true })
	s.comes(id, stepMake)
	s.yard.set(func() { s.yard.slow = false })
	s.comes(id, backup.StepServe)
	s.yard.set(func() { s.yard.fails["zone-a"] = "!nobody fetched it" })
	if r := s.ends(id, operation.Failed); r.Reason == "" {
		t.Errorf("%+v", r)
	}
	s.clean(i.ResourceID)
}

func TestADownloadThatCannotBeMade(t *testing.T) {
	s := newSite(t)
	s.lead(s.runner, s.elect())
	i := s.instance("orders", "zone-a", func(i *spec.Instance) { i.StorageKey = "key-1" })
	s.ends(s.snapshot(i, "first", backup.Take, nil), operation.Done)
	shot := s.shot("first")
	host := func(name, why string, free int64) {
		s.put(state.Put(state.Host(name), member.Host{Name: name, DiskFree: free, Majors: map[int]string{15: "15.1"}, WhyPlain: why}))
	}
	host("zone-a", "it has no fscrypt", 1<<30)
	host("zone-b", "it has no fscrypt", 1<<30)
	id := s.download(i, "download-1", shot, backup.Downloading{Form: backup.Dump})
	s.waits(id, "no host can encrypt")
	host("zone-a", "", 299)
	host("zone-b", "", 10)
	s.waits(id, "three times the size of the database: zone-a, which has most")
	host("zone-a", "", 300)
	if s.comes(id, backup.StepServe); !s.yard.downloads[0].Encrypted {
		t.Errorf("asked for %+v", s.yard.downloads[0])
	}
	// Cancelled, it leaves nothing.
	s.put(state.Put(state.OperationCancel(id), operation.Wish{By: "me", At: time.Now()}))
	s.ends(id, operation.Cancelled)
	s.clean(i.ResourceID)

	s.put(state.Delete(state.Backup(i.ResourceID, "main", shot.Label)))
	s.ends(s.download(i, "download-2", shot, backup.Downloading{Form: backup.Dump}), operation.Failed)
}
