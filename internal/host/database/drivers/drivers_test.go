package drivers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/model/member"
)

// A look says who leads and who runs. Who led last, and who was seen some minutes ago, stays.
func TestWhatIsSeen(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 27, 13, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	var s member.Seen
	for _, look := range []struct {
		what    string
		at      int
		leader  string
		running []string
		want    member.Seen
	}{
		{"nobody leads yet", 0, "", []string{"m1"}, member.Seen{At: at(0), Members: map[string]time.Time{"m1": at(0)}}},
		{"one leads", 1, "m1", []string{"m1", "m2"}, member.Seen{At: at(1), Leader: "m1", Writer: "m1", WriterAt: at(1), Members: map[string]time.Time{"m1": at(1), "m2": at(1)}}},
		{"it is lost", 2, "", []string{"m2"}, member.Seen{At: at(2), Writer: "m1", WriterAt: at(1), Members: map[string]time.Time{"m1": at(1), "m2": at(2)}}},
		{"the other leads", 3, "m2", []string{"m2"}, member.Seen{At: at(3), Leader: "m2", Writer: "m2", WriterAt: at(3), Members: map[string]time.Time{"m1": at(1), "m2": at(3)}}},
		{"the first stays away", 302, "m2", []string{"m2"}, member.Seen{At: at(302), Leader: "m2", Writer: "m2", WriterAt: at(302), Members: map[string]time.Time{"m2": at(302)}}},
	} {
		s = next(s, look.leader, look.running, at(look.at))
		if diff := cmp.Diff(look.want, s); diff != "" {
			t.Errorf("%s: %s", look.what, diff)
		}
	}
}
