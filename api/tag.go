package api

import (
	"reflect"
	"strings"
)

// Member is what the struct tag of a field says of a member on the wire.
type Member struct {
	// Name is the member's name as an XML element.
	Name string
	// Param is its name in a query parameter: Name, unless the protocol has two.
	Param string
	// Flat lists are numbered right behind Param in a request.
	Flat bool
	// Element is the name of a list's elements; "" where the member is no list.
	Element string
	// Required members must be given.
	Required bool
	// Sensitive members are not to be shown in messages and logs.
	Sensitive bool
	// Check names the limits of the member's value, Each those of a list's elements.
	Check, Each string
}

// MemberOf reads the tag of a generated field, for example
//
//	`wire:"SubnetIds,list=SubnetIdentifier,required"`
//
// It returns false for a field without that tag.
func MemberOf(field reflect.StructField) (Member, bool) {
	tag, ok := field.Tag.Lookup("wire")
	if !ok {
		return Member{}, false
	}
	name, rest, _ := strings.Cut(tag, ",")
	member := Member{Name: name, Param: name}
	for option := range strings.SplitSeq(rest, ",") {
		key, value, _ := strings.Cut(option, "=")
		switch key {
		case "param":
			member.Param = value
		case "flat":
			member.Flat = true
		case "list":
			member.Element = value
		case "required":
			member.Required = true
		case "sensitive":
			member.Sensitive = true
		case "check":
			member.Check = value
		case "each":
			member.Each = value
		}
	}
	return member, true
}
