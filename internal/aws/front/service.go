package front

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// Service is one service of AWS, or the part of it that Howdah has. Name and Actions are required,
// and either Contract or Target.
type Service struct {
	// Name is the service's name in signatures, in ARNs, and before the names of actions in
	// policies.
	Name string
	// Contract is the contract of a service that speaks the query protocol.
	Contract *api.Service
	// Target is the beginning of X-Amz-Target, for a service that speaks JSON 1.1.
	Target string
	// Actions has all actions that Howdah does, by name.
	Actions map[string]Action
	// Refused returns the error of an action that is not done, if there is more to say than front
	// says, or else nil. It may be nil, except for a service that speaks JSON.
	Refused func(action string) error
	// Unsigned returns in which scope an action may be called without a signature, with these
	// parameters. The action itself checks what stands for a signature. nil is nowhere.
	Unsigned func(action string, values url.Values) (spec.Scope, bool)

	// Resources returns the ARNs of everything that a request names, as policies write them. If it
	// returns none, the request is about everything. in is a pointer to the decoded request. It may
	// be nil.
	Resources func(c Call, in any) []string
	// Context adds the condition keys of this service that a request has. It may be nil.
	Context func(c Call, in any, all map[string][]string)
	// Describe adds what a resource of this service has, such as its tags, by its ARN. known is
	// false if nobody can tell. With nil nobody can tell for any resource.
	Describe func(all map[string][]string, scope spec.Scope, arn string) (known bool)
	// AnyCase says that names of resources mean the same in any case, also in policies.
	AnyCase bool

	// Check refuses input of any action, after what models and front refuse. It may be nil.
	Check func(c Call, in any) error
	// LongTexts bounds the texts that may be longer than others, by their names in the model.
	LongTexts map[string]int
	// Blank has texts that must be given and may be blank, by their names in the model. The actions
	// have an answer of their own for a blank text.
	Blank []string
	// Errors gives errors of other services, and of front, the names of this service. It may be
	// nil.
	Errors func(*wire.Error) *wire.Error
}

// Does returns the names of a service's actions, sorted.
func (s *Service) Does() []string { return slices.Sorted(maps.Keys(s.Actions)) }

// refuse returns the error of an action that is not done.
func (s *Service) refuse(action string) error {
	if s.Refused != nil {
		if err := s.Refused(action); err != nil {
			return err
		}
	}
	if s.Contract != nil {
		if _, exists := s.Contract.Action(action); exists {
			return wire.NewError(api.ErrInvalidAction, "The action %s is not available in this version of Howdah.", action)
		}
	}
	return wire.NewError(api.ErrInvalidAction, "The action %s is not valid for this web service.", action)
}

// Action decodes a request, does it, and returns its output or nil: see On and OnJSON.
type Action struct {
	do func(ctx context.Context, c Call, in request) (any, error)
}

// request is what is decoded: the parameters in the query protocol, or the body in JSON.
type request struct {
	service *Service
	values  url.Values
	body    []byte
}

// Void is the output of actions that have none. Their handlers return a nil pointer.
type Void struct{}

// On returns an action of the query protocol from a handler with typed input and output. The
// handler is called only with input that the caller's policies and the model allow.
func On[In, Out any](handler func(context.Context, Call, *In) (*Out, error)) Action {
	return on(handler, true)
}

// Free is On for what every caller may do, whatever policies say.
func Free[In, Out any](handler func(context.Context, Call, *In) (*Out, error)) Action {
	return on(handler, false)
}

func on[In, Out any](handler func(context.Context, Call, *In) (*Out, error), limited bool) Action {
	return Action{func(ctx context.Context, c Call, r request) (any, error) {
		in := new(In)
		if err := wire.DecodeForm(r.values, in); err != nil {
			return nil, err
		}
		if limited {
			if err := c.front.authorize(r.service, c, in); err != nil {
				return nil, err
			}
		}
		if err := c.front.checkRoom(c); err != nil {
			return nil, err
		}
		if err := r.service.check(c, in); err != nil {
			return nil, err
		}
		out, err := handler(ctx, c, in)
		if err != nil || out == nil {
			return nil, err
		}
		return out, nil
	}}
}

// check refuses input that no action of the service takes.
func (s *Service) check(c Call, in any) error {
	if err := wire.Validate(in); err != nil {
		return err
	}
	if err := s.checkInput(in); err != nil {
		return err
	}
	if s.Check == nil {
		return nil
	}
	return s.Check(c, in)
}

// OnJSON returns an action of JSON 1.1 from a handler with typed input. may is called first. It
// asks the caller's policies about what the request names, with Call.May. If may is nil, the
// handler does that, before it says anything about what exists.
func OnJSON[In any](may func(context.Context, Call, *In) error, handler func(context.Context, Call, *In) (any, error)) Action {
	return Action{func(ctx context.Context, c Call, r request) (any, error) {
		in := new(In)
		if err := decodeJSON(r.body, in); err != nil {
			return nil, err
		}
		if may != nil {
			if err := may(ctx, c, in); err != nil {
				return nil, err
			}
		}
		if err := c.front.checkRoom(c); err != nil {
			return nil, err
		}
		return handler(ctx, c, in)
	}}
}

// decodeJSON reads an input. It ignores what it does not know, as AWS does.
func decodeJSON(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return wire.NewError("SerializationException", "The body of the request is no input of this action: %s", err)
	}
	return nil
}
