package wire

import (
	"fmt"
	"reflect"
	"regexp"
	"sync"
	"time"

	"howdah/api"
)

// kind is the form of a member on the wire.
type kind uint8

const (
	kindString kind = iota
	kindInt
	kindFloat
	kindBool
	kindTime
	kindStruct
	kindStructs
	kindStrings
	kindMap
)

// scalar reports whether the member is one value.
func (k kind) scalar() bool { return k <= kindTime }

// mapElement is the element of a map's entries in a list of them.
const mapElement = "entry"

// plan is what a structure's tags say, read once a type.
type plan struct {
	fields  []field
	byName  map[string]*field // by the name of the element
	byParam map[string]*field // by the name of the parameter
}

// field is one member of a structure.
type field struct {
	api.Member
	kind  kind
	index int
	// bits is the size of a kindInt.
	bits int
	// inner is the structure of a kindStruct or of a list's elements.
	inner reflect.Type
	// check and each are nil where the value or the list's elements have no limits.
	check, each *check
	// The XML tags of the member and of a list's elements.
	start, end, empty    string
	elemStart, elemEnd   string
	elemEmpty, paramElem string
}

// check is an api.Check ready to use.
type check struct {
	api.Check
	pattern *regexp.Regexp
}

var plans sync.Map // of reflect.Type to *plan

// planOf returns the plan of a structure. It panics on a type that does not
// follow the rules of api/gen, which is a mistake in our own code.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p, _ := plans.LoadOrStore(t, newPlan(t))
	return p.(*plan)
}

func newPlan(t reflect.Type) *plan {
	p := &plan{fields: make([]field, 0, t.NumField()), byName: make(map[string]*field, t.NumField()), byParam: make(map[string]*field, t.NumField())}
	checks := map[string]api.Check{}
	if s, ok := servicesByPackage[t.PkgPath()]; ok {
		checks = s.Checks
	}
	for sf := range t.Fields() {
		member, ok := api.MemberOf(sf)
		if !ok {
			continue
		}
		f := field{Member: member, index: sf.Index[0]}
		if !f.classify(sf.Type) {
			panic(fmt.Sprintf("wire: field %s of %s has the unsupported type %s", sf.Name, t, sf.Type))
		}
		f.check, f.each = compile(checks, member.Check), compile(checks, member.Each)
		f.name()
		p.fields = append(p.fields, f)
	}
	for i := range p.fields {
		p.byName[p.fields[i].Name] = &p.fields[i]
		p.byParam[p.fields[i].Param] = &p.fields[i]
	}
	return p
}

// classify sets the field's kind; it returns false for a type that has none.
func (f *field) classify(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return f.classifyPointer(t.Elem())
	case reflect.Slice:
		f.inner = t.Elem()
		f.kind = kindStrings
		if f.inner.Kind() == reflect.Struct {
			f.kind = kindStructs
		}
		return f.kind == kindStructs || f.inner.Kind() == reflect.String
	case reflect.Map:
		f.kind = kindMap
		f.Element = mapElement
		return t == reflect.TypeFor[map[string]string]()
	default:
		return false
	}
}

func (f *field) classifyPointer(t reflect.Type) bool {
	if t == reflect.TypeFor[time.Time]() {
		f.kind = kindTime
		return true
	}
	switch t.Kind() {
	case reflect.String:
		f.kind = kindString
	case reflect.Int32, reflect.Int64:
		f.kind, f.bits = kindInt, t.Bits()
	case reflect.Float64:
		f.kind = kindFloat
	case reflect.Bool:
		f.kind = kindBool
	case reflect.Struct:
		f.kind, f.inner = kindStruct, t
	default:
		return false
	}
	return true
}

// name prepares the texts that the codecs write.
func (f *field) name() {
	f.start, f.end, f.empty = "<"+f.Name+">", "</"+f.Name+">", "<"+f.Name+"/>"
	f.elemStart, f.elemEnd, f.elemEmpty = "<"+f.Element+">", "</"+f.Element+">", "<"+f.Element+"/>"
	f.paramElem = f.Param + "." + f.Element + "."
	if f.Flat {
		f.paramElem = f.Param + "."
	}
}

func compile(checks map[string]api.Check, name string) *check {
	limits, ok := checks[name]
	if !ok {
		return nil
	}
	c := &check{Check: limits}
	if limits.Pattern != "" {
		c.pattern = regexp.MustCompile(`^(?:` + limits.Pattern + `)$`)
	}
	return c
}
