package server

import (
	"context"
	"net/url"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/wire"
)

// action decodes a request, does it, and answers its output or nil.
type action func(ctx context.Context, s *Server, c call, values url.Values) (any, error)

// actions are all that Howdah does, by service and name.
var actions = map[string]map[string]action{
	"rds": {
		"CreateDBInstance":    on((*Server).createDBInstance),
		"DescribeDBInstances": on((*Server).describeDBInstances),
		"DeleteDBInstance":    on((*Server).deleteDBInstance),
	},
}

// on makes an action of a handler with typed input and output.
func on[In, Out any](handler func(*Server, context.Context, call, *In) (*Out, error)) action {
	return func(ctx context.Context, s *Server, c call, values url.Values) (any, error) {
		in := new(In)
		if err := wire.DecodeForm(values, in); err != nil {
			return nil, err
		}
		if err := wire.Validate(in); err != nil {
			return nil, err
		}
		out, err := handler(s, ctx, c, in)
		if err != nil {
			return nil, err
		}
		return out, nil
	}
}

// find answers InvalidAction for what the service does not have, and says so
// plainly for what Howdah does not have yet.
func find(service, name string) (action, error) {
	known, ok := actions[service]
	if !ok {
		return nil, wire.NewError(api.ErrInvalidAction, "The service %s is not available here: Howdah speaks rds and sts.", service)
	}
	if do, ok := known[name]; ok {
		return do, nil
	}
	if _, exists := rds.Service.Action(name); service == "rds" && exists {
		return nil, wire.NewError(api.ErrInvalidAction, "The action %s is not available in this version of Howdah.", name)
	}
	return nil, wire.NewError(api.ErrInvalidAction, "The action %s is not valid for this web service.", name)
}
