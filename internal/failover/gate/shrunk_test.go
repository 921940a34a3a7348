package gate

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"howdah/internal/model/patroni"
)

// m3 was lost. It had confirmed commits that m2 has not received yet, and from then on Patroni of
// m1 relies on m2 alone. Until m2 is known to have caught up, only m3 can tell that it has not.
func TestWhoIsLeftHasWhatTheOthersConfirmed(t *testing.T) {
	t.Parallel()
	const alone = `{"leader":"m1","sync_standby":"m2","quorum":0}`
	gone := func(s *stage) { delete(s.at, "m3") }
	leads := func(name string) func(s *stage) {
		return func(s *stage) { s.raw(patroni.LeaderKey("db-1"), patroni.OwnName("db-1", name)) }
	}
	// other sets the position of m3, while the own member is on timeline 2.
	other := func(at Position) func(s *stage) {
		return func(s *stage) { s.at["m2"], s.at["m3"] = Position{LSN: 100, Timeline: 2, Recovery: true}, at }
	}
	neither := func(s *stage) {
		s.at["m2"], s.at["m3"] = Position{OnDisk: 2, Silent: true}, Position{OnDisk: 1, Silent: true}
	}
	wrote := func(n int) func(s *stage) {
		return func(s *stage) { s.raw(patroni.StatusKey("db-1"), fmt.Sprintf(`{"optime":%d,"slots":{"m2":1}}`, n)) }
	}
	for _, c := range []struct {
		name    string
		before  func(s *stage) // while both confirmed
		sync    []string
		after   []func(s *stage)
		refused string
	}{
		{name: "nothing is known since", sync: []string{anyOfTwo, alone}, after: []func(s *stage){gone}, refused: "m3 confirmed commits until a moment ago"},
		{name: "… but from before", before: wrote(90), sync: []string{anyOfTwo, alone}, after: []func(s *stage){gone}, refused: "m3 does not answer"},
		{name: "it has all that was written then", sync: []string{anyOfTwo, alone}, after: []func(s *stage){gone, wrote(100)}},
		{name: "… and lacks what was written later", sync: []string{anyOfTwo, alone}, after: []func(s *stage){gone, wrote(100), wrote(1000)}},
		{name: "it lacks what was written then", sync: []string{anyOfTwo, alone}, after: []func(s *stage){gone, wrote(101)}, refused: "m3 does not answer"},
		{name: "… as another one said, that had the key for a moment", sync: []string{anyOfTwo, alone}, after: []func(s *stage){gone, leads("m2"), wrote(90)},
			refused: "m3 does not answer"},
		{name: "… and the primary has led on since, with less to its name", sync: []string{anyOfTwo, alone}, after: []func(s *stage){gone, leads("m1"), wrote(90)},
			refused: "m3 does not answer"},
		{name: "… and the other one is back, and has no more", sync: []string{anyOfTwo, alone}, after: []func(s *stage){wrote(101)}},
		{name: "… and has more", sync: []string{anyOfTwo, alone},
			after: []func(s *stage){func(s *stage) { s.at["m3"] = Position{LSN: 101, Timeline: 1, Recovery: true} }}, refused: "m3 is ahead"},
		{name: "… and the other one does not run, and never had WAL of this timeline", sync: []string{anyOfTwo, alone},
			after: []func(s *stage){other(Position{OnDisk: 1, Silent: true})}},
		{name: "… and the other one does not run, and had some", sync: []string{anyOfTwo, alone},
			after: []func(s *stage){other(Position{OnDisk: 2, Silent: true})}, refused: "m3 does not answer"},
		{name: "… and the other one is far on the timeline before", sync: []string{anyOfTwo, alone},
			after: []func(s *stage){other(Position{LSN: 900, Timeline: 1, OnDisk: 1, Recovery: true})}},
		{name: "… and received more of this one", sync: []string{anyOfTwo, alone},
			after: []func(s *stage){other(Position{LSN: 900, Timeline: 1, OnDisk: 2, Recovery: true})}, refused: "m3 is ahead"},
		{name: "… and takes writes", sync: []string{anyOfTwo, alone},
			after: []func(s *stage){other(Position{LSN: 900, Timeline: 1, OnDisk: 1})}, refused: "m3 takes writes"},
		{name: "… and neither runs", sync: []string{anyOfTwo, alone}, after: []func(s *stage){neither}, refused: "its own position is not known"},
		{name: "the state was written again since", sync: []string{anyOfTwo, alone, alone}, after: []func(s *stage){gone}, refused: "m3 confirmed"},
		{name: "nobody was left in between", sync: []string{anyOfTwo, nobody, alone}, after: []func(s *stage){gone}},
		{name: "another primary's", sync: []string{`{"leader":"m3","sync_standby":"m1,m2","quorum":1}`, alone}, after: []func(s *stage){gone}},
		{name: "another one came", sync: []string{`{"leader":"m1","sync_standby":"m2"}`, alone}, after: []func(s *stage){gone}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			leads("m1")(s)
			for i, text := range c.sync {
				if i == 1 && c.before != nil {
					c.before(s)
				}
				s.raw(patroni.SyncKey("db-1"), text)
			}
			for _, change := range c.after {
				change(s)
			}
			leads("m2")(s)
			switch err := s.pass(); {
			case c.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.refused != "" && (!errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.refused)):
				t.Errorf("%v, want a refusal that says %q", err, c.refused)
			}
		})
	}
}
