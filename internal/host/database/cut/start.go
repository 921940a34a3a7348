package cut

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"howdah/internal/failover/fence"
)

// A cut that was told of has to hold until its case is closed, also where the host is
// started again: what was in its kernel is gone then. So nothing is started that could
// receive from a lost primary before it was asked which those are, and is cut off again.

// admission is what the last look at the open cases has found.
type admission struct {
	lost  []fence.Case      // primaries that have to be cut off
	tried map[*Standby]bool // own standbys of theirs that it was tried to cut off
	err   error             // why some could not be
}

// Admits reports whether a member may be started: it is known which primaries are lost, and
// the member is cut off from them. why says what keeps it from being cut off; nil: the next look
// will tell. It is called by the goroutine of the member.
func (f *Fences) Admits(s *Standby) (ok bool, why error) {
	found := f.admission.Load()
	if found == nil {
		return false, nil
	}
	from := slices.DeleteFunc(slices.Clone(found.lost), func(c fence.Case) bool { return !s.confirms(c.Leadership) })
	if len(from) == 0 {
		return true, nil
	}
	if !found.tried[s] {
		return false, nil
	}
	err := found.err
	if _, byReceiver := f.Cutter.(*Receiver); byReceiver && err == nil {
		err = s.cutAtRest(from)
	}
	return err == nil, err
}

var errNoData = errors.New("it has no data yet, and would copy those of the lost primary")

// cutAtRest writes the cut of a WAL receiver to disk, where it is not: it was in the
// kernel, or a copy has replaced the data since.
func (s *Standby) cutAtRest(from []fence.Case) error {
	if s.IsSealed() || !slices.ContainsFunc(from, s.mustBeCut) {
		return nil
	}
	text, err := s.User().ReadFile(filepath.Join(s.DataDir, AutoConfFile))
	if errors.Is(err, os.ErrNotExist) {
		return errNoData
	}
	if err != nil {
		return fmt.Errorf("cut WAL receiver of %s: %w", s.ID, err)
	}
	// The last line of a name counts.
	text = append(text, "\nprimary_conninfo = ''\n"...)
	return s.User().ReplaceFile(filepath.Join(s.DataDir, AutoConfFile), text, sealedMode)
}
