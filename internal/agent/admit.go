package agent

import (
	"bytes"
	"os"

	"howdah/internal/engine/patroni"
)

// admit writes who may log in to a server that runs. Patroni does so too, with the
// same content, but only in its next round, up to a second later: whoever may not
// connect any more is kept out at once.
func (r *runner) admit(m patroni.Member) error {
	now, err := os.ReadFile(m.HBAPath())
	if err != nil || bytes.Equal(now, m.HBA()) {
		return err
	}
	return replaceFile(m.HBAPath(), m.HBA(), 0o600, r.agent.user)
}
