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

// Service is one service of AWS, or the part of it that Howdah has. Name and Actions are
// required, and either Contract or Target.
type Service struct {
	// Name is that in signatures, in ARNs, and before the names of actions in policies.
	Name string
	// Contract is that of a service which speaks the query protocol.
	Contract *api.Service
	// Target is what X-Amz-Target begins with, of a service that speaks JSON 1.1.
	Target string
	// Actions are all that Howdah does, by name.
	Actions map[string]Action
	// Refused is the error of an action that is not done, if there is more to say of it than
	// others of front do, or nil. It may be nil, but for a service that speaks JSON.
	Refused func(action string) error
	// Unsigned is in which scope an action may be called without a signature, with these
	// parameters: what stands for one is theirs to check. Nil: nowhere.
	Unsigned func(action string, values url.Values) (spec.Scope, bool)

	// Resources are the ARNs of everything that a request names, as policies write them; none:
	// the request is about everything. in is a pointer to the decoded request. It may be nil.
	Resources func(c Call, in any) []string
	// Context adds the condition keys of this service that a request has. It may be nil.
	Context func(c Call, in any, all map[string][]string)
	// Describe adds what a resource of this service, of an ARN, has, as its tags; known is
	// false where nobody can tell. Nil: nobody can of any.
	Describe func(all map[string][]string, scope spec.Scope, arn string) (known bool)
	// AnyCase says that names of resources mean the same in any case, in policies too.
	AnyCase bool

	// Check refuses input of any action, after what models and front refuse. It may be nil.
	Check func(c Call, in any) error
	// LongTexts bound the texts that may be longer than others, by their names in the model.
	LongTexts map[string]int
	// Blank are texts that must be given and may be blank, by their names in the model: the
	// actions have their own word for it.
	Blank []string
	// Errors gives errors of other services, and of front, this one's names. It may be nil.
	Errors func(*wire.Error) *wire.Error
}

// Does are the names of a service's actions, sorted.
func (s *Service) Does() []string { return slices.Sorted(maps.Keys(s.Actions)) }

// refuse is the error of an action that is not done.
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

// Action decodes a request, does it, and answers its output or nil: see On and OnJSON.
type Action struct {
	do func(ctx context.Context, c Call, in request) (any, error)
}

// request is what is decoded: the parameters of one in the query protocol, or the body of one
// in JSON.
type request struct {
	service *Service
	values  url.Values
	body    []byte
}

// Void is the output of actions that have none: handlers answer a nil pointer.
type Void struct{}

// On makes an action of the query protocol of a handler with typed input and output. The handler
// is called with input that the caller's policies allow and that the model does.
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

// OnJSON makes an action of JSON 1.1 of a handler with typed input. May asks the caller's
// policies about what the request names, by Call.May, and is called first. Nil: the handler does
// it, before anything is said of what there is.
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

// decodeJSON reads an input. What it does not know it leaves alone, as AWS does.
func decodeJSON(body []byte, into any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err := json.Unmarshal(body, into); err != nil {
		return wire.NewError("SerializationException", "The body of the request is no input of this action: %s", err)
	}
	return nil
}
