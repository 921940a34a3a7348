package front

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/identity/stranger"
	"howdah/internal/model/spec"
)

// mostMessage bounds what an error says, because it shows values of any length.
const mostMessage = 2000

// known returns the service's own error for any error. An error that is none of these is our fault:
// it is logged in full, and the caller gets an id by which to find it.
func (f *Front) known(service *Service, id string, err error) *wire.Error {
	var known *wire.Error
	if !errors.As(err, &known) {
		known = Translate(err)
	}
	if known == nil {
		f.Log.Error("call failed", "request", id, "error", err)
		known = wire.NewError(api.ErrInternalFailure, "An internal error has occurred; see request %s in the log of howdah serve.", id)
	}
	if service.Errors != nil {
		known = service.Errors(known)
	}
	if len(known.Message) > mostMessage {
		short := *known
		short.Message = strings.ToValidUTF8(known.Message[:mostMessage], "") + "..."
		return &short
	}
	return known
}

// Translate turns errors of the layers below into the API's. It returns nil for an error that it
// does not know.
func Translate(err error) *wire.Error {
	var invalid *spec.Invalid
	switch {
	case errors.As(err, &invalid):
		return wire.NewError(invalid.Code, "%s", invalid.Message)
	case errors.Is(rpctypes.Error(err), rpctypes.ErrNoSpace), errors.Is(err, rpctypes.ErrNoSpace):
		return errFull()
	case errors.Is(err, stranger.ErrFull):
		return wire.NewError(api.ErrServiceUnavailable, "The request was not read: too many are at this moment of callers who have not been authenticated yet. Try again.")
	case storeIsSilent(err):
		return wire.NewError(api.ErrServiceUnavailable, "The state store did not answer in time: see `howdah status`, and try again.")
	default:
		return nil
	}
}

// storeIsSilent reports whether etcd did not answer in time, or has no leader just now.
func storeIsSilent(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return true
	}
	code := status.Code(err)
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = e.Code()
	}
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.Canceled
}

// adds has the beginnings of the names of actions that put more into the state. Actions that
// replace or delete go on.
var adds = []string{"Add", "Authorize", "Copy", "Create", "Publish", "Restore", "Subscribe"}

// checkRoom refuses to add to a state in which only the room for failovers is left.
func (f *Front) checkRoom(c Call) error {
	if f.Scarce == nil || !f.Scarce() {
		return nil
	}
	_, name, _ := strings.Cut(c.Action, ":")
	for _, word := range adds {
		if strings.HasPrefix(name, word) {
			return errFull()
		}
	}
	return nil
}

func errFull() *wire.Error {
	return wire.NewError(api.ErrServiceUnavailable,
		"The state store is nearly full, and what is left is kept for failovers: see `howdah etcd status`, run `howdah etcd mend`, and try again.")
}
