package wire

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// setScalar sets a member that is one value from its text. name is the
// parameter's full name.
func setScalar(f *field, v reflect.Value, name, text string) error {
	pointer := reflect.New(v.Type().Elem())
	if !parseScalar(f, pointer.Elem(), text) {
		return invalid(name, "must be %s%s", wanted(f), notShown(f, text))
	}
	v.Set(pointer)
	return nil
}

// parseScalar sets v from the text; it returns false if the text is not of the
// member's type or out of its range.
func parseScalar(f *field, v reflect.Value, text string) bool {
	switch f.kind {
	case kindString:
		v.SetString(text)
		return true
	case kindInt:
		n, err := strconv.ParseInt(text, 10, f.bits)
		v.SetInt(n)
		return err == nil
	case kindFloat:
		x, err := strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		return err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
	case kindBool:
		v.SetBool(strings.EqualFold(text, "true"))
		return v.Bool() || strings.EqualFold(text, "false")
	default:
		t, ok := parseTime(text)
		v.Set(reflect.ValueOf(t))
		return ok
	}
}

// timeLayouts are the forms of ISO 8601 that clients send. The RDS reference
// also writes times without seconds.
var timeLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00"}

// parseTime returns the time in UTC. It refuses a year that four digits cannot
// write, which a zone can lead to.
func parseTime(text string) (time.Time, bool) {
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			t = t.UTC()
			return t, writable(t)
		}
	}
	return time.Time{}, false
}

func writable(t time.Time) bool { return t.Year() >= 1 && t.Year() <= 9999 }

func wanted(f *field) string {
	switch f.kind {
	case kindInt:
		return fmt.Sprintf("an integer of %d bits", f.bits)
	case kindFloat:
		return "a finite number"
	case kindBool:
		return "true or false"
	default:
		return "a time like 2006-01-02T15:04:05Z"
	}
}

// notShown returns ", not <text>" for a message, shortened so that a message
// stays a line, and nothing if the member is sensitive.
func notShown(f *field, text string) string {
	const most = 80
	if f.Sensitive {
		return ""
	}
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + "..."
	}
	return ", not '" + text + "'"
}
