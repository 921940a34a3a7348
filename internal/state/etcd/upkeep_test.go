package etcd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var errAway = errors.New("away")

// at returns the conditions of members with a quota of 1024 MiB. The first member leads.
func at(texts ...string) []Condition {
	var all []Condition
	for i, text := range texts {
		var size, inUse int64
		var word string
		if n, _ := fmt.Sscanf(text, "%d/%d %s", &inUse, &size, &word); n == 0 {
			word = text
		}
		c := Condition{ID: uint64(i + 1), Name: fmt.Sprintf("s%d", i+1), Leader: i == 0, Size: size << 20, InUse: inUse << 20, Quota: 1 << 30}
		switch word {
		case "full":
			c.Full = true
		case "away":
			c = Condition{ID: c.ID, Name: c.Name, Err: errAway}
		case "away-full":
			c = Condition{ID: c.ID, Name: c.Name, Err: errAway, Full: true}
		case "learner":
			c.Learner = true
		}
		all = append(all, c)
	}
	return all
}

func TestNext(t *testing.T) {
	now := time.Unix(1e9, 0)
	asked := func(l *Look) { l.Asked = 9000 }
	just := func(l *Look) { l.Compacted, l.CompactedAt = 9000, now.Add(-time.Second) }
	for _, c := range []struct {
		name    string
		members []Condition
		with    func(*Look)
		want    string
	}{
		{"at rest", at("10/20"), nil, "nothing to do"},
		{"history grows", at("70/100"), nil, "compact the history before revision 8000: 70 MiB in use, and growing"},
		{"history grows, from what is live", at("70/100"), func(l *Look) { l.Left = 50 << 20 }, "nothing to do"},
		{"history is young", at("70/100"), func(l *Look) { l.Old = 0 }, "nothing to do"},
		{"the reserve is begun", at("70/520"), nil, "compact the history before revision 8000: 70 MiB in use"},
		{"the reserve is begun, and all history is young", at("515/520"), func(l *Look) { l.Old = 0 }, "nothing to do"},
		{"the reserve is begun, compacted", at("70/520"), just, "defragment s1: 70 MiB of 520 MiB are in use"},
		{"the reserve is begun, and all is live", at("515/520"), just, "nothing to do"},
		{"half of the file is free", at("60/260"), nil, "defragment s1: 60 MiB of 260 MiB are in use"},
		{"half of a small file is free", at("10/200"), nil, "nothing to do"},
		{"just defragmented", at("60/260"), func(l *Look) { l.Defragged = map[uint64]time.Time{1: now.Add(-time.Minute)} }, "nothing to do"},
		{"just defragmented, and the reserve is begun", at("60/520"), func(l *Look) { just(l); l.Defragged = map[uint64]time.Time{1: now.Add(-time.Minute)} }, "defragment s1: 60 MiB of 520 MiB are in use"},
		{"just defragmented, for little", at("400/520"), func(l *Look) { just(l); l.Defragged = map[uint64]time.Time{1: now.Add(-time.Minute)} }, "nothing to do"},
		{"a failover is under way", at("60/260"), func(l *Look) { l.Busy = true }, "nothing to do"},
		{"a failover is under way, and nobody can write", at("60/1024 full"), func(l *Look) { l.Busy = true; just(l) }, "defragment s1: 60 MiB of 1024 MiB are in use"},
		{"alone with much", at("300/700"), func(l *Look) { l.Members[0].Quota *= 2; l.Left = 290 << 20 }, "nothing to do"},
		{"alone with much, asked", at("300/700"), func(l *Look) { l.Members[0].Quota *= 2; asked(l); just(l) }, "defragment s1: 300 MiB of 700 MiB are in use"},
		{"the others first", at("60/260", "60/260", "60/260"), nil, "defragment s2: 60 MiB of 260 MiB are in use"},
		{"the leader last", at("60/260", "60/60", "60/60"), nil, "move etcd's leadership to s2: s1 is to be defragmented, 60 MiB of 260 MiB are in use"},
		{"not while another one is away", at("60/260", "60/260", "away"), nil, "nothing to do"},
		{"not while another one is away, with the reserve begun", at("60/60", "60/600", "away"), just, "nothing to do"},
		{"while another one is away, with the alarm", at("60/60 full", "60/1024", "away"), just, "disarm"},
		{"no majority to spare with the alarm", at("60/1024 full", "60/1024", "away"), just, "defragment s2: 60 MiB of 1024 MiB are in use"},
		{"alarm", at("700/1024 full"), nil, "compact the history before revision 9000: 700 MiB in use"},
		{"alarm, compacted", at("60/1024 full"), just, "defragment s1: 60 MiB of 1024 MiB are in use"},
		{"alarm, with room", at("60/61 full"), just, "disarm the alarm: there is room again"},
		{"alarm of another one, with room", at("60/61", "60/61 full", "60/61"), just, "disarm the alarm: there is room again"},
		{"alarm of one that is away", at("60/61", "60/61", "away-full"), just, "disarm the alarm: there is room again"},
		{"alarm, and what was freed is not counted", at("1000/1024 full"), just, "defragment s1: 1000 MiB of 1024 MiB are in use"},
		{"alarm, and all is live", at("1000/1024 full"), func(l *Look) { just(l); l.Defragged = map[uint64]time.Time{1: now} }, "nothing to do"},
		{"an older release has no quota", at("60/260"), func(l *Look) { l.Members[0].Quota = 0 }, "defragment s1: 60 MiB of 260 MiB are in use"},
		{"asked at rest", at("10/20"), asked, "compact the history before revision 9000: 10 MiB in use"},
		{"asked a moment after it compacted by itself", at("10/20"), func(l *Look) { asked(l); l.Compacted, l.CompactedAt = 8990, now }, "compact the history before revision 9000: 10 MiB in use"},
		{"asked, compacted since, and written to", at("10/200"), func(l *Look) { asked(l); just(l); l.Revision = 9100 }, "defragment s1: 10 MiB of 200 MiB are in use"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := Look{Now: now, Own: 1, Members: c.members, Revision: 9000, Old: 8000}
			if c.with != nil {
				c.with(&l)
			}
			got := l.Next().String()
			if c.want == "disarm" {
				if !strings.HasPrefix(got, "defragment s2") {
					t.Errorf("%s", got)
				}
				return
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A plan names all deeds in the order in which they are done.
func TestPlan(t *testing.T) {
	l := Look{Now: time.Unix(1e9, 0), Own: 1, Members: at("900/1024 full", "900/1024", "900/1024"), Revision: 9000, Asked: 9000}
	var got []string
	for _, d := range l.Plan() {
		got = append(got, d.id())
	}
	want := "compact |defrag s2|defrag s3|handover s2|defrag s1|disarm "
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("%s, want %s", text, want)
	}
}
