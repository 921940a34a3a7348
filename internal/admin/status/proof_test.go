package status

import (
	"strings"
	"testing"

	"howdah/internal/admin/database"
	"howdah/internal/control/plan"
	"howdah/internal/failover/fence"
	"howdah/internal/model/patroni"
)

// What a promotion waits for says who would help, and where they are.
func TestTheTextOfAPlea(t *testing.T) {
	d := database.Subject{}
	d.Layout.Members = []plan.Placed{{Name: "m1", Host: "zone-a"}, {Name: "m2", Host: "zone-b"}, {Name: "m3", Host: "zone-c"}}
	text := pleaText(d, fence.Plea{
		Member: "m2", Old: patroni.Sync{Leader: "m1"}, Why: "m1 may still acknowledge writes that m3 confirms", Missing: []string{"m3"},
	})
	for _, part := range []string{"m2 waits to be promoted, and m1 may still", "m3 is on zone-c", "howdah host off zone-a"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
	if text := pleaText(d, fence.Plea{Member: "m2", Old: patroni.Sync{Leader: "m9"}}); !strings.Contains(text, "no host") {
		t.Errorf("of a member that is gone: %q", text)
	}
}

// If it is not in question whether the old primary runs, nobody is told to swear that it does not.
func TestWhatToDoWhereOthersMayHaveMore(t *testing.T) {
	d := database.Subject{}
	text := pleaText(d, fence.Plea{Member: "m2", Old: patroni.Sync{Leader: "m1"}, Why: "m3 confirmed commits until a moment ago"})
	if strings.Contains(text, "howdah host off") || !strings.Contains(text, "to answer, or m1 on") {
		t.Errorf("it says %s", text)
	}
}
