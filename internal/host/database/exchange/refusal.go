package exchange

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"howdah/internal/host/hostapi"
	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

var (
	errNotAllowed = errors.New("permission denied")
	errBusy       = errors.New("too many exports and imports are under way")
	errMute       = fmt.Errorf("%w: it says nothing", store.ErrAway)
)

// unasked says that no control plane has told what a role opens.
type unasked struct{ error }

func (u *unasked) Unwrap() error { return u.error }

// misnamed says why we give no object the name.
type misnamed struct{ error }

func (m *misnamed) Unwrap() error { return m.error }

// say returns the SQLSTATE for an error, and what users are told. Where a server is, and how it is reached,
// is for the operator, who finds it in the log.
func say(err error) (state, text string) {
	_, noControl := errors.AsType[*unasked](err)
	name, bad := errors.AsType[*misnamed](err)
	switch {
	case errors.Is(err, hostapi.ErrRefused):
		return "42501", withoutWay(err)
	case noControl:
		return "08006", "no control plane says what the role of the database opens: try again"
	case errors.Is(err, errNotAllowed):
		return "42501", err.Error()
	case errors.Is(err, errBusy):
		return "53300", err.Error() + ": try again"
	case bad:
		return "22023", name.Error()
	case errors.Is(err, store.ErrName): // of the server's making, whose words are for the log
		return "22023", store.ErrName.Error()
	case errors.Is(err, store.ErrNotFound):
		return "58P01", "there is no such file in the bucket"
	case errors.Is(err, store.ErrFull):
		return "53100", "the S3 server has no room, or the file is larger than it may be"
	case errors.Is(err, store.ErrReadOnly):
		return "42501", "permission denied by the S3 server"
	case errors.Is(err, store.ErrAway), errors.Is(err, context.DeadlineExceeded):
		return "08006", "the S3 server does not answer, or lets the role in no more"
	case errors.Is(err, errTalk):
		return "08P01", errTalk.Error()
	case errors.Is(err, context.Canceled), errors.Is(err, errGone):
		return "57P01", "the agent of the host is being stopped"
	}
	return "58000", "the S3 server answers with an error"
}

// withoutWay returns what a control plane said, without how it came here.
func withoutWay(err error) string {
	text := err.Error()
	if at := strings.Index(text, member.ErrNoRole.Error()); at >= 0 {
		text = text[at:]
	}
	return strings.TrimSuffix(text, ": "+hostapi.ErrRefused.Error())
}
