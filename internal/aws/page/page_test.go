package page

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"howdah/internal/aws/wire"
)

// TestPagesOfSome checks that pages which stop early equal those of a list that was filtered first,
// whatever matches, and wherever a page begins, also after an entry that no longer exists.
func TestPagesOfSome(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	name := func(s string) string { return s }
	for range 300 {
		var all []string
		for n := range random.IntN(130) {
			if random.IntN(4) > 0 {
				all = append(all, fmt.Sprintf("db-%03d", n))
			}
		}
		rare := 1 + random.IntN(5)
		matches := func(s string) bool { return int(s[len(s)-1])%rare == 0 }
		size := int32(20 + random.IntN(30))
		var marker *string
		if random.IntN(2) == 0 {
			marker = wire.Some(Marker(fmt.Sprintf("db-%03d", random.IntN(140))))
		}
		matching := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !matches(s) })
		for {
			want, wantNext, err := Of(matching, name, &size, marker)
			if err != nil {
				t.Fatal(err)
			}
			got, next, err := OfSome(all, name, matches, &size, marker)
			if err != nil || !slices.Equal(got, want) || wire.Or(next, "") != wire.Or(wantNext, "") {
				t.Fatalf("after %q: %q, then %q (%v); want %q, then %q", wire.Or(marker, ""), got, wire.Or(next, ""), err, want, wire.Or(wantNext, ""))
			}
			if marker = next; marker == nil {
				break
			}
		}
	}
	for _, bad := range []int32{0, 19, 101} {
		if _, _, err := OfSome(nil, name, nil, &bad, nil); err == nil {
			t.Errorf("pages of %d are none", bad)
		}
	}
	size := int32(20)
	if _, _, err := OfSome([]string{"a"}, name, nil, &size, wire.Some("no marker")); err == nil {
		t.Error("a marker that nobody made is taken")
	}
}
