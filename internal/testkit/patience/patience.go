// Package patience says how long tests wait on a machine that they share.
package patience

import (
	"os"
	"strconv"
	"time"
)

// For returns how long to wait for something that takes this long on a machine that does nothing
// else: HOWDAH_TEST_PATIENCE times that, which scripts/test sets. Use it for what must happen, not
// for how soon it must.
func For(alone time.Duration) time.Duration {
	times, err := strconv.Atoi(os.Getenv("HOWDAH_TEST_PATIENCE"))
	if err != nil {
		return alone
	}
	return alone * time.Duration(max(times, 1))
}
