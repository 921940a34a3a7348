package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"howdah/internal/model/member"
)

// table is the last decision, and what it was made of, for people.
func (s *sim) table() string {
	var b strings.Builder
	if s.gone {
		b.WriteString("  gone\n")
		s.leftovers(&b)
		return b.String()
	}
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, m := range s.layout.Members {
		place := fmt.Sprintf("%s:%d", m.Host, m.Port)
		fmt.Fprintln(tab, strings.TrimRight(strings.Join([]string{"  " + m.Name, place, m.Seat, s.state(m), flags(m)}, "\t"), "\t"))
	}
	tab.Flush()
	s.leftovers(&b)
	s.lines(&b)
	return trimRight(b.String())
}

// leftovers are members on disks that nobody counts on any more.
func (s *sim) leftovers(b *strings.Builder) {
	for _, key := range slices.Sorted(maps.Keys(s.members)) {
		host, id := splitKey(key)
		if find(s.layout, strings.TrimPrefix(id, s.want.ID+".")) == nil {
			fmt.Fprintf(b, "  left on %s: %s\n", host, id)
		}
	}
}

func trimRight(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

func (s *sim) lines(b *strings.Builder) {
	l := s.layout
	if n := len(l.Steps); n > 0 {
		fmt.Fprintf(b, "  step: %s\n", l.Steps[n-1].Name)
	}
	if l.Asked != nil && l.Asked.Ended.IsZero() {
		fmt.Fprintf(b, "  asked: %s\n", l.Asked.ID())
	}
	for _, text := range s.problems {
		fmt.Fprintf(b, "  problem: %s\n", text)
	}
	fmt.Fprintf(b, "  sync: %s", s.config.Sync)
	if l.Created {
		b.WriteString(", created")
	}
	for _, done := range []struct {
		name string
		n    int64
	}{{"change", l.Changed}, {"reboot", l.Rebooted}, {"failover", l.FailedOver}} {
		if done.n > 0 {
			fmt.Fprintf(b, ", %s %d done", done.name, done.n)
		}
	}
	b.WriteString("\n")
}

// state is what the member really is.
func (s *sim) state(m Placed) string {
	h := s.host(m.Host)
	r := s.members[m.Host+"/"+member.ID(s.want.ID, m.Name)]
	switch {
	case h == nil:
		return "host forgotten"
	case !h.up:
		return "host lost"
	case r == nil:
		return "new"
	case r.gone:
		return "gone"
	}
	word := "down"
	switch {
	case !r.running:
	case s.leader == m.Name && r.promoted:
		word = "primary"
	case s.leader == m.Name:
		word = "elected"
	case !r.data:
		word = "copying"
	case slices.Contains(s.sync.Standbys, m.Name) && s.sync.Leader == s.leader:
		word = "standby in sync"
	default:
		word = "replica"
	}
	if r.restarting > 0 || r.handover {
		word = "restarting"
	}
	if !h.agent {
		word += ", agent dead"
	}
	return word
}

func flags(m Placed) string {
	var all []string
	add := func(on bool, word string) {
		if on {
			all = append(all, word)
		}
	}
	add(m.Going != Staying, string(m.Going))
	add(m.Barred, "barred")
	add(m.NoSync, "nosync")
	add(m.Boost, "boost")
	add(m.Stopped, "stop")
	add(m.Leaving, "DELETE")
	if m.Copy != nil {
		add(true, "of "+m.Copy.Label)
	}
	return strings.Join(all, " ")
}
