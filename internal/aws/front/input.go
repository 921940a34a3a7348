package front

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// mostText bounds texts that neither the models nor Service.LongTexts bound, because some texts are
// kept as they are.
const mostText = 4096

// checkInput refuses what the model of a service lets pass and no action takes: blank texts where a
// text is required, and texts that are too long.
func (s *Service) checkInput(in any) error { return s.checkShape(reflect.ValueOf(in).Elem(), "") }

func (s *Service) checkShape(v reflect.Value, prefix string) error {
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
			err = s.checkText(m, name, value.String())
		case value.Kind() == reflect.Struct && field.Type != momentType:
			err = s.checkShape(value, name+".")
		case value.Kind() == reflect.Slice:
			err = s.checkElements(m, name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var momentType = reflect.TypeFor[*time.Time]()

func (s *Service) checkElements(m api.Member, name string, list reflect.Value) error {
	if !m.Flat {
		name += "." + m.Element
	}
	m.Required = false
	for i := range list.Len() {
		each, element := list.Index(i), name+"."+strconv.Itoa(i+1)
		var err error
		if each.Kind() == reflect.String {
			err = s.checkText(m, element, each.String())
		} else {
			err = s.checkShape(each, element+".")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) checkText(m api.Member, name, value string) error {
	limit, long := s.LongTexts[m.Name]
	if !long {
		limit = mostText
	}
	switch {
	case m.Required && !slices.Contains(s.Blank, m.Name) && strings.TrimSpace(value) == "":
		return Blank(name)
	case utf8.RuneCountInString(value) > limit:
		return wire.NewError(api.ErrInvalidParameterValue, "The parameter %s must have at most %d characters.", name, limit)
	}
	return nil
}

// Blank returns the error of a parameter that must have a value.
func Blank(parameter string) error {
	return wire.NewError(api.ErrInvalidParameterValue, "The parameter %s must be provided and must not be blank.", parameter)
}
