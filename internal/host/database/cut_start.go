package database

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"howdah/internal/failover/fence"
	"howdah/internal/model/member"
)

// A cut that was told of has to hold until its case is closed, also where the host is
// started again: what was in its kernel is gone then. So nothing is started that could
// receive from a lost primary before it was asked which those are, and is cut off again.

// admission is what the last look at the open cases has found.
type admission struct {
	lost  []fence.Case     // primaries that have to be cut off
	tried map[*runner]bool // own standbys of theirs that it was tried to cut off
	err   error            // why some could not be
}

// mayStart reports whether Patroni may be started: it is known which primaries are lost,
// and the member is cut off from them. While its PostgreSQL runs it needs no leave: the
// host was not started again since, and cuts of a server that runs are made beside. Nor
// does the leave keep a database down: without etcd Patroni starts no PostgreSQL either.
func (r *runner) mayStart() bool {
	if r.postmaster.Alive() {
		return true
	}
	found := r.host.admission.Load()
	if found == nil {
		return false
	}
	from := slices.DeleteFunc(slices.Clone(found.lost), func(c fence.Case) bool { return !r.confirms(c.Leadership) })
	if len(from) == 0 {
		return true
	}
	if !found.tried[r] {
		return false // the next look will
	}
	err := found.err
	if _, byReceiver := r.host.cut.(*receiverCutter); byReceiver && err == nil {
		err = r.cutAtRest(from)
	}
	if err != nil && r.Problem == member.None {
		r.Problem, r.Detail = member.StartFails, "it has to be cut off from a lost primary first: "+err.Error()
		r.Log.Error("start Patroni", "error", r.Detail)
	}
	return err == nil
}

var errNoData = errors.New("it has no data yet, and would copy those of the lost primary")

// cutAtRest writes the cut of a WAL receiver to disk, where it is not: it was in the
// kernel, or a copy has replaced the data since.
func (r *runner) cutAtRest(from []fence.Case) error {
	if r.isSealed() || !slices.ContainsFunc(from, r.mustBeCut) {
		return nil
	}
	text, err := r.User().ReadFile(filepath.Join(r.dataDir(), autoConfFile))
	if errors.Is(err, os.ErrNotExist) {
		return errNoData
	}
	if err != nil {
		return fmt.Errorf("cut WAL receiver of %s: %w", r.ID, err)
	}
	// The last line of a name counts.
	text = append(text, "\nprimary_conninfo = ''\n"...)
	return r.User().ReplaceFile(filepath.Join(r.dataDir(), autoConfFile), text, sealedMode)
}
