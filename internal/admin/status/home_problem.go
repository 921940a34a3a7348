package status

import (
	"fmt"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/state/etcd"
)

// homeProblems returns the problems of the home's own parts.
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

// etcdFull returns at most one problem, because what is done about it is done to all members.
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

// hostProblems returns a problem for each host that is lost, or that runs another version than this
// control plane.
func (s *service) hostProblems(hosts []admin.Host) []admin.Problem {
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

func (s *service) lostHost(h admin.Host) admin.Problem {
	text := fmt.Sprintf("silent since %s", h.Since.UTC().Format("15:04:05Z"))
	if len(h.Members) > 0 {
		text += ", with " + strings.Join(h.Members, ", ")
	}
	return admin.Problem{
		Code: admin.ProblemHost, Subject: "host " + h.Name, Command: s.startHost(h),
		Text: text + ": start its agent again; if the machine is gone for good: howdah host forget " + h.Name,
	}
}

// startHost returns the command that starts the agent of a host again. For a host of `howdah up` it
// starts the whole home. For another machine it starts the agent there.
func (s *service) startHost(h admin.Host) string {
	if strings.HasPrefix(h.Address, s.Home.Network+".") {
		return "howdah up --detach"
	}
	return fmt.Sprintf("howdah agent --az %s --name %s --address %s", h.Zone, h.Name, h.Address)
}
