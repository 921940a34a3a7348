package rewind

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"howdah/internal/model/spec"
)

// Of each field it is said whose it is after the exchange: what users see and set is as it was. A new
// field fails here until somebody has thought of it.
func TestWhoseFieldsAreAfterTheExchange(t *testing.T) {
	// These go with the data, or are counted anew.
	others := []string{
		"ResourceID", "Generation", "PasswordSerial", "Taken", "StorageKey", "Change", "ChangeStatus", "ChangeEvents", "Reboot", "Failover", "FailoverTarget",
		"Origin", "MadeBy", "ClosedBy", "Expects", "Replaced", "Before", "SharedMemory", "Restart", "ClusterTaken", "Source", "Promoted",
	}
	var old, inside spec.Instance
	fill(reflect.ValueOf(&old).Elem(), 1)
	fill(reflect.ValueOf(&inside).Elem(), 2)
	next, gone := exchanged(old, inside)
	each(reflect.ValueOf(next), reflect.ValueOf(old), func(name string, is, was any) {
		if same := reflect.DeepEqual(is, was); same == slices.Contains(others, name) {
			t.Errorf("%s is %v, and was %v", name, is, was)
		}
	})
	for name, ok := range map[string]bool{
		"the data":     next.ResourceID == inside.ResourceID && next.StorageKey == inside.StorageKey && next.Origin == inside.Origin && gone.ResourceID == old.ResourceID && gone.StorageKey == old.StorageKey,
		"the planner":  next.Change > inside.Change && next.Reboot == inside.Reboot && next.Restart == inside.Restart && next.Failover == inside.Failover,
		"hidden":       gone.Hidden() && gone.Deleting && gone.ClosedBy == "" && !next.Hidden(),
		"the places":   gone.Name == inside.Name && gone.Address == inside.Address && len(gone.Former) == 0,
		"the password": next.Verifier == old.Verifier && next.PasswordSerial == 2,
	} {
		if !ok {
			t.Errorf("%s: %+v\nand %+v", name, next, gone)
		}
	}
}

// each calls do for the fields of an instance, also for those of what it embeds.
func each(a, b reflect.Value, do func(name string, a, b any)) {
	for n := range a.NumField() {
		if f := a.Type().Field(n); f.Anonymous {
			each(a.Field(n), b.Field(n), do)
		} else {
			do(f.Name, a.Field(n).Interface(), b.Field(n).Interface())
		}
	}
}

// fill gives each field a value that says n.
func fill(v reflect.Value, n int64) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('0' + n)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(n, 0)))
			return
		}
		for k := range v.NumField() {
			fill(v.Field(k), n)
		}
	default: // a new kind shows as a field that differs nowhere
		panic(v.Kind())
	}
}
