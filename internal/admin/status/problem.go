package status

import (
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/database"
	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/state"
	"howdah/internal/view"
)

// databaseProblems returns everything that is wrong with a database: what holds its planner up,
// what its members report, what is missing, and what is wrong with its backups.
func (s *service) databaseProblems(d database.Subject, backups Backups) []admin.Problem {
	if why := s.Held.Why(d.Want.ID); why != "" {
		return []admin.Problem{{
			Code: admin.ProblemHeld, Subject: d.Title(), ResourceID: d.Common.ResourceID, Command: "howdah home held",
			Text: "the home was restored, and the database is not taken over yet: " + why,
		}}
	}
	all := append(s.planProblems(d), backups.Problems(d)...)
	add := func(code, command, text string, args ...any) {
		all = append(all, admin.Problem{
			Code: code, Subject: d.Title(), ResourceID: d.Common.ResourceID, Text: fmt.Sprintf(text, args...), Command: command,
		})
	}
	if why := s.unproved(d); why != "" {
		add(admin.ProblemProof, "", "nobody is promoted, so that nothing is lost: %s", why)
	} else if len(s.Cache.Keys(state.FencePrefix(d.Want.ID))) > 0 {
		add(admin.ProblemFence, "", "its primary may be lost: the standbys' hosts are being asked, and it is fenced if they agree")
	}
	for _, m := range d.Layout.Members {
		if r := d.Reports[member.ID(d.Want.ID, m.Name)]; r.Problem != member.None && d.Alive[m.Host] {
			command, text := s.explain(d, m, r)
			add(string(r.Problem), command, "%s on %s: %s", m.Name, m.Host, text)
		}
	}
	if d.Want.State != member.Running || !d.Layout.Created {
		return all
	}
	if primary, serving := d.Primary(); serving && view.Edgeless(s.Cache)(primary.Host) {
		add(admin.ProblemEdge, "howdah edge --own "+primary.Host, "no edge runs on %s, where its primary is: the addresses of its endpoints move with the edges of hosts, and nobody has them", primary.Host)
	}
	addMissing(d, add)
	return all
}

// unproved says why nobody takes the place of a lost primary, and what would help. It returns "" if
// nothing of the kind is known.
func (s *service) unproved(d database.Subject) string {
	why, open, plea := view.Unproved(s.Cache, d.Want.ID)
	switch {
	case open != nil:
		return why + helpWithout(open.Host)
	case plea != nil:
		return pleaText(d, *plea)
	}
	return ""
}

// pleaText says what a promotion waits for.
func pleaText(d database.Subject, p fence.Plea) string {
	text := p.Member + " waits to be promoted, and " + p.Why
	for _, name := range p.Missing {
		text += "; " + name + " is on " + d.HostOf(name)
	}
	if len(p.Missing) == 0 {
		// Whether the old primary is off is not the question.
		return text + "; get the members that it names to answer, or " + p.Old.Leader + " on " + d.HostOf(p.Old.Leader)
	}
	return text + helpWithout(d.HostOf(p.Old.Leader))
}

// helpWithout says what helps if the host of the old primary is lost.
func helpWithout(host string) string {
	return "; get the agents there to answer, or " + host + " itself, or switch that off and say so: howdah host off " + host
}

// addMissing adds what a running database should have and does not have.
func addMissing(d database.Subject, add func(code, command, text string, args ...any)) {
	show := "howdah db show " + d.Common.Name
	_, serving := d.Primary()
	if !serving {
		add(admin.ProblemPrimary, show, "no member serves as primary: %s", whyNoPrimary(d))
	}
	for _, m := range d.Layout.Members {
		r := d.Reports[member.ID(d.Want.ID, m.Name)]
		word := memberState(d, m, r)
		settled := len(d.Layout.Steps) == 0 && m.Going == plan.Staying && !m.Leaving
		if settled && (word == stateDown || word == stateNotReady) && r.Problem == member.None && serving {
			add(admin.ProblemMember, show, "%s on %s is %s%s; it is being brought back", m.Name, m.Host, word, inBrackets(r.Detail))
		}
	}
	mode := plan.SyncMode(d.Want, d.Layout)
	if serving && mode != patroni.SyncOff && (len(d.Sync.Standbys) == 0 || d.Sync.Leader != d.Leader) {
		add(admin.ProblemSync, "", "no standby is in sync: %s; a standby is brought back as soon as there is a host for it", withoutSync(d))
	}
}

func withoutSync(d database.Subject) string {
	if d.Want.WaitForStandby {
		return "writes wait until one is"
	}
	return "writes go on without one, and are lost if the primary is lost now"
}

func whyNoPrimary(d database.Subject) string {
	var lost []string
	for _, m := range d.Layout.Members {
		if !d.Alive[m.Host] && !slices.Contains(lost, m.Host) {
			lost = append(lost, m.Host)
		}
	}
	switch {
	case len(lost) > 0 && d.Leader == "":
		return "none is elected, and lost are " + strings.Join(lost, ", ")
	case d.Leader == "":
		return "none is elected yet"
	case len(lost) > 0:
		return "lost are " + strings.Join(lost, ", ")
	}
	return d.Leader + " is elected and does not serve yet"
}

// planProblems asks the planner what holds it up. It decides nothing here.
func (s *service) planProblems(d database.Subject) []admin.Problem {
	in, ok := s.Databases.Input(d)
	if !ok {
		return nil // it is wanted no more
	}
	var all []admin.Problem
	for _, told := range plan.Next(in).Problems {
		p := admin.Problem{Code: admin.ProblemPlan, Subject: d.Title(), ResourceID: d.Common.ResourceID, Text: told.Text, Command: "howdah db show " + d.Common.Name}
		switch told.Kind {
		case plan.NoStandby, plan.HostLost:
			continue // told by addMissing and by hostProblems
		case plan.LacksExtensions:
			p.Code, p.Command = admin.ProblemLacks, "scripts/install --extensions "+told.Extensions
		case plan.OlderExtensions:
			p.Code, p.Command = admin.ProblemOlder, "scripts/install --extensions "+told.Extensions
		case plan.NoPlace:
			p.Code, p.Command = admin.ProblemPlace, "howdah status --join"
		case plan.CannotClone:
			p.Code, p.Command = string(member.RestoreFails), "howdah db delete "+d.Common.Name
			p.Text = "its data cannot be restored (" + told.Text + "): delete it, and clone another one"
		}
		all = append(all, p)
	}
	return all
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
