package proc

import (
	"strings"
	"testing"
)

// Members leave no core files, nor does what they start.
func TestMembersLeaveNoCores(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			w := newWorld(t, k)
			w.watch(w.start("sh -c 'grep core /proc/self/limits'"))
			fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(w.logged()), "Max core file size"))
			if len(fields) < 2 || fields[0] != "1" && fields[0] != "0" || fields[1] != "1" && fields[1] != "0" {
				t.Errorf("the limits are %q", w.logged())
			}
		})
	}
}
