package server

import (
	"context"
	"net/url"

	"howdah/api"
	"howdah/internal/wire"
)

// action decodes a request, does it, and answers its output or nil.
type action func(ctx context.Context, s *Server, c call, values url.Values) (any, error)

// actions are all that Howdah does, by service and name.
var actions = map[string]map[string]action{
	"rds": {
		"AddTagsToResource":           on((*Server).addTagsToResource),
		"CreateDBCluster":             on((*Server).createDBCluster),
		"CreateDBClusterEndpoint":     on((*Server).createDBClusterEndpoint),
		"CreateDBInstance":            on((*Server).createDBInstance),
		"CreateDBInstanceReadReplica": on((*Server).createDBInstanceReadReplica),
		"DeleteDBCluster":             on((*Server).deleteDBCluster),
		"DeleteDBClusterEndpoint":     on((*Server).deleteDBClusterEndpoint),
		"DeleteDBInstance":            on((*Server).deleteDBInstance),
		"DescribeDBClusterEndpoints":  on((*Server).describeDBClusterEndpoints),
		"DescribeDBClusters":          on((*Server).describeDBClusters),
		"DescribeDBInstances":         on((*Server).describeDBInstances),
		"DescribeEvents":              on((*Server).describeEvents),
		"FailoverDBCluster":           on((*Server).failoverDBCluster),
		"ListTagsForResource":         on((*Server).listTagsForResource),
		"ModifyDBCluster":             on((*Server).modifyDBCluster),
		"ModifyDBClusterEndpoint":     on((*Server).modifyDBClusterEndpoint),
		"ModifyDBInstance":            on((*Server).modifyDBInstance),
		"PromoteReadReplica":          on((*Server).promoteReadReplica),
		"RebootDBCluster":             on((*Server).rebootDBCluster),
		"RebootDBInstance":            on((*Server).rebootDBInstance),
		"RemoveTagsFromResource":      on((*Server).removeTagsFromResource),
		"StartDBCluster":              on((*Server).startDBCluster),
		"StartDBInstance":             on((*Server).startDBInstance),
		"StopDBCluster":               on((*Server).stopDBCluster),
		"StopDBInstance":              on((*Server).stopDBInstance),
	},
	"sts": {
		"GetCallerIdentity": on((*Server).getCallerIdentity),
	},
}

// void is the output of actions that have none: handlers answer a nil pointer.
type void struct{}

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
		if err != nil || out == nil {
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
	for _, s := range wire.Services() {
		if _, exists := s.Action(name); exists && s.Name == service {
			return nil, wire.NewError(api.ErrInvalidAction, "The action %s is not available in this version of Howdah.", name)
		}
	}
	return nil, wire.NewError(api.ErrInvalidAction, "The action %s is not valid for this web service.", name)
}
