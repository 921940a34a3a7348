package wire

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"time"
)

// EncodeForm returns the query parameters that ask for an action with that
// input, as botocore writes them. Nil members send nothing; an empty list or map
// sends "Name=", and so does an empty structure, of which botocore would send
// nothing. A nil input sends the action alone. It panics if in is neither nil nor
// a pointer to an input structure.
func EncodeForm(action, version string, in any) url.Values {
	values := url.Values{"Action": {action}, "Version": {version}}
	if in == nil {
		return values
	}
	v, err := structOf(in)
	if err != nil {
		panic(fmt.Sprintf("wire: encode form of %s: %v", action, err))
	}
	formEncoder{values}.members(v, "")
	return values
}

type formEncoder struct{ values url.Values }

// members sets the parameters of a structure's members; it returns false if no
// member is set.
func (e formEncoder) members(v reflect.Value, prefix string) bool {
	p, set := planOf(v.Type()), false
	for i := range p.fields {
		f := &p.fields[i]
		if value := v.Field(f.index); !value.IsNil() {
			e.member(f, value, prefix)
			set = true
		}
	}
	return set
}

func (e formEncoder) structure(v reflect.Value, name string) {
	if !e.members(v, name+".") {
		e.values.Set(name, "")
	}
}

func (e formEncoder) member(f *field, v reflect.Value, prefix string) {
	switch f.kind {
	case kindStruct:
		e.structure(v.Elem(), prefix+f.Param)
	case kindStructs, kindStrings, kindMap:
		if v.Len() == 0 {
			e.values.Set(prefix+f.Param, "")
			return
		}
		e.elements(f, v, prefix+f.paramElem)
	default:
		e.values.Set(prefix+f.Param, formText(f, v.Elem()))
	}
}

func (e formEncoder) elements(f *field, v reflect.Value, prefix string) {
	if f.kind == kindMap {
		entries := v.Interface().(map[string]string)
		for i, key := range sortedKeys(entries) {
			entry := prefix + strconv.Itoa(i+1)
			e.values.Set(entry+".key", key)
			e.values.Set(entry+".value", entries[key])
		}
		return
	}
	for i := range v.Len() {
		element := prefix + strconv.Itoa(i+1)
		if f.kind == kindStrings {
			e.values.Set(element, v.Index(i).String())
		} else {
			e.structure(v.Index(i), element)
		}
	}
}

func formText(f *field, v reflect.Value) string {
	switch f.kind {
	case kindInt:
		return strconv.FormatInt(v.Int(), 10)
	case kindFloat:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	case kindBool:
		return strconv.FormatBool(v.Bool())
	case kindTime:
		return v.Interface().(time.Time).UTC().Format(time.RFC3339Nano)
	default:
		return v.String()
	}
}
