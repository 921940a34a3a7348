package wire

import (
	"errors"
	"fmt"
	"reflect"

	"howdah/api"
	"howdah/api/ec2"
	"howdah/api/rds"
	"howdah/api/sns"
	"howdah/api/sts"
)

var services = []*api.Service{&rds.Service, &sts.Service, &sns.Service, &ec2.Service}

// Services returns the contracts of all services that this package can encode
// and decode. The caller must not change them.
func Services() []*api.Service { return services }

// ErrShape means that the caller passed an action or a structure that no service
// model has: a mistake in our own code.
var ErrShape = errors.New("not a shape of the service models")

// servicesByPackage finds the service that a generated type belongs to.
var servicesByPackage = func() map[string]*api.Service {
	byPackage := map[string]*api.Service{}
	for _, s := range services {
		byPackage[reflect.TypeOf(s.Actions[0].Input()).Elem().PkgPath()] = s
	}
	return byPackage
}()

// findAction returns the action of that name and its service. Two services may
// have actions of one name: the type of out, which is nil for a void action,
// tells them apart.
func findAction(name string, out any) (*api.Action, *api.Service, error) {
	for _, s := range services {
		if action, ok := s.Action(name); ok && answers(action, out) {
			return action, s, nil
		}
	}
	return nil, nil, fmt.Errorf("action %s answering %T: %w", name, out, ErrShape)
}

func answers(action *api.Action, out any) bool {
	if action.Output == nil || out == nil {
		return action.Output == nil && out == nil
	}
	return reflect.TypeOf(action.Output()) == reflect.TypeOf(out)
}

// structOf returns the structure that the non-nil pointer points to.
func structOf(pointer any) (reflect.Value, error) {
	v := reflect.ValueOf(pointer)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("%T is not a pointer to a structure: %w", pointer, ErrShape)
	}
	return v.Elem(), nil
}
