package server

import (
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/state/etcd"
	"howdah/internal/view"
)

// homeProblems are those of the home's own parts.
func homeProblems(s admin.Status) []admin.Problem {
	var all []admin.Problem
	for _, m := range s.Etcd {
		if !m.Healthy {
			all = append(all, admin.Problem{
				Code: admin.ProblemEtcd, Subject: "etcd " + m.Name, Command: "howdah serve --name " + m.Name,
				Text: "the control plane " + m.Name + " does not answer (" + m.Error + "): start it again on its machine",
			})
		}
	}
	all = append(all, etcdFull(s.Etcd)...)
	if len(s.Edges) == 0 {
		all = append(all, admin.Problem{
			Code: admin.ProblemNoEdge, Subject: "edge", Text: "no edge runs: new endpoints lead nowhere, and the others follow no failover", Command: "howdah edge",
		})
	}
	for _, e := range s.Edges {
		if !e.Running {
			all = append(all, admin.Problem{
				Code: admin.ProblemEdge, Subject: "edge " + e.Name, Command: "howdah edge --name " + e.Name,
				Text: "the edge " + e.Name + " does not run: its endpoints lead where they led, and follow no failover",
			})
		}
	}
	if len(s.Hosts) == 0 {
		all = append(all, admin.Problem{
			Code: admin.ProblemNoHost, Subject: "hosts", Text: "no host has joined: databases have no place", Command: "howdah status --join",
		})
	}
	return all
}

// etcdFull is at most one problem: what is done about it is done to all members.
func etcdFull(members []admin.EtcdMember) []admin.Problem {
	var scarce []string
	full := false
	for _, m := range members {
		full = full || m.Full
		if m.Scarce {
			scarce = append(scarce, fmt.Sprintf("%s has %s of %s", m.Name, etcd.Bytes(m.Size), etcd.Bytes(m.Quota)))
		}
	}
	p := admin.Problem{Code: admin.ProblemFull, Subject: "etcd", Command: "howdah etcd mend"}
	switch {
	case full:
		p.Text = "etcd is full and takes no writes: no failover is possible, and no change"
	case len(scarce) > 0:
		p.Text = "etcd is nearly full, and what is left is kept for failovers: nothing can be created"
	default:
		return nil
	}
	p.Text += inBrackets(strings.Join(scarce, ", "))
	return []admin.Problem{p}
}

// hostProblems are hosts that are lost, or that run another version than we do.
func (s *Server) hostProblems(hosts []admin.Host) []admin.Problem {
	var all []admin.Problem
	for _, h := range hosts {
		switch {
		case h.State == admin.HostLost:
			all = append(all, s.lostHost(h))
		case h.Version != s.Version:
			all = append(all, admin.Problem{
				Code: admin.ProblemVersions, Subject: "host " + h.Name, Command: s.startHost(h),
				Text: fmt.Sprintf("its agent is version %s, this control plane %s: start it again with the new program", h.Version, s.Version),
			})
		}
	}
	return all
}

func (s *Server) lostHost(h admin.Host) admin.Problem {
	text := fmt.Sprintf("silent since %s", h.Since.UTC().Format("15:04:05Z"))
	if len(h.Members) > 0 {
		text += ", with " + strings.Join(h.Members, ", ")
	}
	return admin.Problem{
		Code: admin.ProblemHost, Subject: "host " + h.Name, Command: s.startHost(h),
		Text: text + ": start its agent again; if the machine is gone for good: howdah host forget " + h.Name,
	}
}

// startHost is the command that starts the agent of a host again: for one of
// `howdah up` the whole home, for another machine the agent there.
func (s *Server) startHost(h admin.Host) string {
	if strings.HasPrefix(h.Address, s.Home.Network+".") {
		return "howdah up --detach"
	}
	return fmt.Sprintf("howdah agent --az %s --name %s --address %s", h.Zone, h.Name, h.Address)
}

// databaseProblems are everything that is wrong with a database: what holds its
// planner up, what its members report, and what is missing.
func (s *Server) databaseProblems(d subject) []admin.Problem {
	if why := s.held(d.Want.ID); why != "" {
		return []admin.Problem{{
			Code: admin.ProblemHeld, Subject: d.title(), ResourceID: d.common.ResourceID, Command: "howdah home held",
			Text: "the home was restored, and the database is not taken over yet: " + why,
		}}
	}
	all := s.planProblems(d)
	add := func(code, command, text string, args ...any) {
		all = append(all, admin.Problem{
			Code: code, Subject: d.title(), ResourceID: d.common.ResourceID, Text: fmt.Sprintf(text, args...), Command: command,
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
	d.addMissing(add)
	return all
}

// unproved says why nobody takes the place of a lost primary, and what would help; "" if
// nothing of the kind is known.
func (s *Server) unproved(d subject) string {
	why, open, plea := view.Unproved(s.Cache, d.Want.ID)
	switch {
	case open != nil:
		return why + helpWithout(open.Host)
	case plea != nil:
		return d.pleaText(*plea)
	}
	return ""
}

// pleaText is what a promotion waits for.
func (d subject) pleaText(p fence.Plea) string {
	text := p.Member + " waits to be promoted, and " + p.Why
	for _, name := range p.Missing {
		text += "; " + name + " is on " + d.hostOf(name)
	}
	if len(p.Missing) == 0 {
		// That the old primary is off is not what is in question.
		return text + "; get the members that it names to answer, or " + p.Old.Leader + " on " + d.hostOf(p.Old.Leader)
	}
	return text + helpWithout(d.hostOf(p.Old.Leader))
}

// helpWithout is what helps where the host of the old primary is lost.
func helpWithout(host string) string {
	return "; get the agents there to answer, or " + host + " itself, or switch that off and say so: howdah host off " + host
}

func (d subject) hostOf(name string) string {
	for _, m := range d.Layout.Members {
		if m.Name == name {
			return m.Host
		}
	}
	return "no host"
}

// addMissing tells what a running database should have and has not.
func (d subject) addMissing(add func(code, command, text string, args ...any)) {
	show := "howdah db show " + d.common.Name
	_, serving := d.Primary()
	if !serving {
		add(admin.ProblemPrimary, show, "no member serves as primary: %s", d.whyNoPrimary())
	}
	for _, m := range d.Layout.Members {
		r := d.Reports[member.ID(d.Want.ID, m.Name)]
		word := d.memberState(m, r)
		settled := len(d.Layout.Steps) == 0 && m.Going == plan.Staying && !m.Leaving
		if settled && (word == stateDown || word == stateNotReady) && r.Problem == member.None && serving {
			add(admin.ProblemMember, show, "%s on %s is %s%s; it is being brought back", m.Name, m.Host, word, inBrackets(r.Detail))
		}
	}
	mode := plan.SyncMode(d.Want, d.Layout)
	if serving && mode != patroni.SyncOff && (len(d.sync.Standbys) == 0 || d.sync.Leader != d.Leader) {
		add(admin.ProblemSync, "", "no standby is in sync: %s; a standby is brought back as soon as there is a host for it", d.withoutSync())
	}
}

func (d subject) withoutSync() string {
	if d.Want.WaitForStandby {
		return "writes wait until one is"
	}
	return "writes go on without one, and are lost if the primary is lost now"
}

func (d subject) whyNoPrimary() string {
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
func (s *Server) planProblems(d subject) []admin.Problem {
	in, ok := s.planInput(d)
	if !ok {
		return nil // it is wanted no more
	}
	var all []admin.Problem
	for _, told := range plan.Next(in).Problems {
		p := admin.Problem{Code: admin.ProblemPlan, Subject: d.title(), ResourceID: d.common.ResourceID, Text: told.Text, Command: "howdah db show " + d.common.Name}
		switch told.Kind {
		case plan.NoStandby, plan.HostLost:
			continue // told by addMissing and by hostProblems
		case plan.NoPlace:
			p.Code, p.Command = admin.ProblemPlace, "howdah status --join"
		}
		all = append(all, p)
	}
	return all
}

// planInput is what reconcile decides a database's next step by. Reports and edges count as for a
// status: those of agents and edges that run. Not ok: the database is wanted no more.
func (s *Server) planInput(d subject) (in plan.Input, ok bool) {
	wanted := s.wants.Now()
	own := wanted.Database(d.Want.ID)
	if own == nil {
		return in, false
	}
	basis := wanted.Basis(own, d.Layout, s.looks.Hosts())
	basis.Reports, basis.Since = d.Reports, s.looks.Doubtful()
	return basis.Input(s.now(), s.looks.Policy), true
}

// explain says what a member's problem is, and the command that mends it.
func (s *Server) explain(d subject, m plan.Placed, r member.Report) (command, text string) {
	name := d.common.Name
	switch r.Problem {
	case member.StorageFull:
		return growCommand(d), "its storage is used up"
	case member.StorageLow:
		return growCommand(d), "less than a tenth of its storage is free"
	case member.DiskFull:
		return "howdah host drain " + m.Host, "the disk of the host is full: free some space there, or move the members away"
	case member.NoVersion:
		return fmt.Sprintf("scripts/install --postgresql %d", d.Want.Major), fmt.Sprintf("PostgreSQL %d is not installed on the host", d.Want.Major)
	case member.PortTaken:
		return "", "something else listens on its port; it moves to another one"
	case member.SlotLost:
		return s.rebuildCommand(d, r.Detail), "a replica fell further behind than the WAL that is kept for it (" + r.Detail + ")"
	case member.NotReplicating:
		return "howdah db show " + name, "it does not receive from the primary"
	case member.CommitsWait:
		return "howdah db show " + name, "commits wait for a standby to confirm them" + inBrackets(r.Detail)
	case member.StartFails:
		return "howdah logs " + name, "it does not start" + inBrackets(r.Detail)
	case member.NoRoom:
		return "howdah host drain " + m.Host, "it cannot go on with the data that it has, which are kept until a standby is in sync, and there is no room for a copy beside them" +
			inBrackets(r.Detail) + ": free some space there, or have it built elsewhere"
	case member.CannotContain:
		return "", "its processes could not be killed" + inBrackets(r.Detail) + ": end them by hand on the host, or reboot it"
	case member.Hangs:
		return "howdah host drain " + m.Host, "its PostgreSQL hangs" + inBrackets(r.Detail) + ": look at the disk of the host; a standby that is in sync takes over"
	case member.NoKey:
		return "", "its storage is encrypted, and its host does not get the key" + inBrackets(r.Detail) + ": it starts as soon as a control plane gives it"
	case member.NotEncryptable:
		return "howdah host drain " + m.Host, "its storage is to be encrypted, and is not" + inBrackets(r.Detail) + ": have it built on a host that can"
	case member.NoModule:
		return restartCommand(d, m), "its PostgreSQL runs without the module howdah" + inBrackets(r.Detail) + ": restart it, when that may be"
	case member.BadAssignment:
		return "", "the agent refused its assignment" + inBrackets(r.Detail) + ": please report this"
	default:
		return "howdah db show " + name, string(r.Problem) + inBrackets(r.Detail)
	}
}

// restartCommand restarts a member that lacks what only a start brings: a primary by a
// failover, where another one may lead. A reboot also restarts standbys that lack it.
func restartCommand(d subject, m plan.Placed) string {
	if m.Name == d.Leader && len(d.sync.Standbys) > 0 {
		return "howdah db failover " + d.common.Name
	}
	return "howdah db reboot " + d.common.Name
}

// growCommand doubles the storage of an instance.
func growCommand(d subject) string {
	if d.instance == nil {
		return "howdah db show " + d.common.Name
	}
	return fmt.Sprintf("howdah db modify %s --storage %d --apply-immediately", d.common.Name, 2*d.instance.Storage)
}

// rebuildCommand names the database whose slot was lost, if it is one's.
func (s *Server) rebuildCommand(d subject, slots string) string {
	for _, r := range state.ViewAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if i := r.Value; i.Follows() && i.Source == d.common.ResourceID && strings.Contains(slots, plan.SlotName(i.ResourceID)) {
			return "howdah db delete " + i.Name
		}
	}
	return "howdah db show " + d.common.Name
}
