package hostapi

import (
	"context"
	"errors"
	"fmt"

	"howdah/internal/model/member"
	"howdah/internal/state"
)

// LoginRequest asks whether a token lets a user into the database of a member.
type LoginRequest struct {
	Member string `json:"member"`
	User   string `json:"user"`
	Token  string `json:"token"`
}

// LoginAnswer lets a user in, or says why not.
type LoginAnswer struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`
}

// tokenRefusal is why a token is refused.
type tokenRefusal string

func (r tokenRefusal) Error() string { return string(r) }

var errNoLogins = errors.New("this control plane checks no tokens")

// RefuseToken returns an error with which Server.Login refuses a token, and says why.
func RefuseToken(why string) error { return tokenRefusal(why) }

// login decides about a login into a member that runs on the caller's host.
func (s *Server) login(ctx context.Context, c call, in LoginRequest) (LoginAnswer, error) {
	host, err := c.agent()
	if err != nil {
		return LoginAnswer{}, err
	}
	assignment, err := state.Get[member.Assignment](ctx, s.Store, state.Assign(host, in.Member))
	if errors.Is(err, state.ErrNotFound) {
		return LoginAnswer{}, fmt.Errorf("%w: %s has no member %q", errForbidden, host, in.Member)
	}
	if err != nil {
		return LoginAnswer{}, err
	}
	if s.Login == nil {
		return LoginAnswer{}, errNoLogins
	}
	err = s.Login(ctx, assignment.Value.Scope, in.User, in.Token)
	if why, ok := errors.AsType[tokenRefusal](err); ok {
		return LoginAnswer{Why: string(why)}, nil
	}
	return LoginAnswer{Allowed: err == nil}, err
}

// Login asks whether a token lets a user into the database of one of the caller's members. An error
// says that this control plane cannot tell.
func (c *Client) Login(ctx context.Context, in LoginRequest) (LoginAnswer, error) {
	var answer LoginAnswer
	err := c.call(ctx, "login", in, &answer)
	return answer, err
}
