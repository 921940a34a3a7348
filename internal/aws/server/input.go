package server

import (
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// mostText bounds texts that the models do not: some are kept as they are.
const mostText = 4096

// longTexts are bounded by who takes them.
var longTexts = map[string]int{"ParameterValue": 65535, "Message": 1 << 20, "AttributeValue": 1 << 20}

// checkInput refuses what the model of a service lets pass and no action takes: blank
// texts that must be given, and texts without an end.
func checkInput(in any) error { return checkShape(reflect.ValueOf(in).Elem(), "") }

func checkShape(v reflect.Value, prefix string) error {
	for field, value := range v.Fields() {
		m, ok := api.MemberOf(field)
		if !ok || value.IsNil() {
			continue
		}
		name := prefix + m.Param
		if value.Kind() == reflect.Pointer {
			value = value.Elem()
		}
		var err error
		switch {
		case value.Kind() == reflect.String:
			err = checkText(m, name, value.String())
		case value.Kind() == reflect.Struct && field.Type != momentType:
			err = checkShape(value, name+".")
		case value.Kind() == reflect.Slice:
			err = checkElements(m, name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var momentType = reflect.TypeFor[*time.Time]()

func checkElements(m api.Member, name string, list reflect.Value) error {
	if !m.Flat {
		name += "." + m.Element
	}
	m.Required = false
	for i := range list.Len() {
		each, element := list.Index(i), name+"."+strconv.Itoa(i+1)
		var err error
		if each.Kind() == reflect.String {
			err = checkText(m, element, each.String())
		} else {
			err = checkShape(each, element+".")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkText leaves SNS's own word for an empty Message to who publishes it.
func checkText(m api.Member, name, value string) error {
	limit, long := longTexts[m.Name]
	if !long {
		limit = mostText
	}
	switch {
	case m.Required && m.Name != "Message" && strings.TrimSpace(value) == "":
		return blank(name)
	case utf8.RuneCountInString(value) > limit:
		return wire.NewError(api.ErrInvalidParameterValue, "The parameter %s must have at most %d characters.", name, limit)
	}
	return nil
}

// blank is the error of a parameter that must have a value.
func blank(parameter string) error {
	return wire.NewError(api.ErrInvalidParameterValue, "The parameter %s must be provided and must not be blank.", parameter)
}

// orBlank is an error of something that is not there, unless it has no name.
func orBlank(name, parameter string, missing error) error {
	if name == "" {
		return blank(parameter)
	}
	return missing
}
