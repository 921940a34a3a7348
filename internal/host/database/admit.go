package database

import (
	"bytes"

	"howdah/internal/engine/patroni/config"
)

// admit writes who may log in to a server that runs. Patroni does so too, with the
// same content, but only in its next round, up to a second later: whoever may not
// connect any more is kept out at once.
func (r *runner) admit(m config.Member) error {
	now, err := r.User().ReadFile(m.HBAPath())
	if err != nil || bytes.Equal(now, m.HBA()) {
		return err
	}
	return r.User().ReplaceFile(m.HBAPath(), m.HBA(), 0o600)
}
