package database

import (
	"strings"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/probe"
	"howdah/internal/model/member"
)

// Describe says what the prober, and those who watch, see.
func (r *runner) Describe(report *member.Report) {
	s := r.probe.Last()
	report.Rendered, report.Patroni, report.Postgres = r.settings.rendered, r.patroni.Alive(), r.postmaster.Alive()
	report.OwnKey = r.patroni.Alive() && r.settings.ownKey
	report.Timeline, report.LSN, report.OwnerSerial = r.Reported.Timeline, r.Reported.LSN, r.Reported.OwnerSerial
	report.StorageBytes, report.Authority, report.CertUntil = r.Reported.StorageBytes, r.Reported.Authority, r.Reported.CertUntil
	report.Follows = r.postmaster.Alive() && !s.Ready && s.Follows
	if r.postmaster.Alive() && s.Ready {
		report.Ready, report.InRecovery, report.Streaming = true, s.Facts.InRecovery, s.Facts.Streaming
		report.Timeline, report.LSN, report.LagSeconds = s.Facts.Timeline, s.Facts.LSN, s.Facts.LagSeconds
		report.Paused, report.Cache = s.Facts.Paused, r.warmth.Last()
		if !s.Facts.InRecovery {
			report.Slots = strings.Join(s.Facts.Slots, " ")
		}
		report.OwnerSerial, report.StorageBytes = s.OwnerSerial, s.Size
		report.DisabledSubscriptions = s.Heritage.Disabled
		report.Authority, report.CertUntil = s.Shown.Authority, s.Shown.Until
	}
	report.Restoring = r.origin.Restoring()
	r.addProblem(report, s)
	r.archiver.describe(report, report.At)
	if h := r.hangs.Last(); h.Why != "" && h.Postmaster == r.postmaster.Process {
		report.Ready, report.Problem, report.Detail = false, member.Hangs, h.Why
	}
}

// addProblem judges what was seen; problems that any member may have come first.
func (r *runner) addProblem(report *member.Report, s probe.Sight) {
	limit := r.Want.Limits.StorageBytes
	lacking := r.aside.Lacking()
	if report.Postgres {
		lacking = ""
	}
	if r.Trouble(report, report.Postgres, s.NoRoom, lacking) {
		return
	}
	switch {
	case len(s.Facts.LostSlots) > 0 && report.Ready:
		report.Problem, report.Detail = member.SlotLost, strings.Join(s.Facts.LostSlots, ", ")
	case s.Stuck > 0 && report.Ready:
		report.Problem, report.Detail = member.CommitsWait, probe.ExplainWaits(s.Stuck, s.StuckSince)
	case limit > 0 && report.StorageBytes >= limit || s.Facts.StorageFull == postgres.StorageFull || s.Facts.StorageFull == postgres.StorageOver:
		report.Problem = member.StorageFull
	case limit > 0 && report.StorageBytes >= limit-limit/10:
		report.Problem = member.StorageLow
	case report.Ready && report.InRecovery && !report.Streaming:
		report.Problem = member.NotReplicating
	case report.Ready && r.module.lacks(r.Want, s.Facts, r.postmaster.Process) != "":
		report.Problem, report.Detail = member.NoModule, r.module.lacks(r.Want, s.Facts, r.postmaster.Process)
	case len(s.Facts.LostUserSlots) > 0 && report.Ready: // what a user does hides nothing
		report.Problem, report.Detail = member.SlotLost, strings.Join(s.Facts.LostUserSlots, ", ")
	case !report.Ready && s.Detail != "":
		report.Detail = s.Detail
	}
}
