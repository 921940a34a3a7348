package wire

import (
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"howdah/api"
)

// Masked stands for the value of a sensitive parameter.
const Masked = "****"

// maxShown is how many characters of a value are shown.
const maxShown = 256

// Shown returns a request's parameters in the form that logs may hold: those that the action's
// model has, with sensitive ones masked and long ones cut. It leaves out what the model does not
// know, because that may be a password under a wrong name.
func Shown(action *api.Action, values url.Values) map[string]string {
	input := reflect.TypeOf(action.Input()).Elem()
	shown := map[string]string{}
	for name, all := range values {
		sensitive, known := sensitivity(input, strings.Split(name, "."))
		switch {
		case !known || len(all) == 0:
		case sensitive || slices.Contains(private, name):
			shown[name] = Masked
		case name == "Endpoint":
			shown[name] = cut(HideURL(all[0]))
		default:
			shown[name] = cut(MaskURL(all[0]))
		}
	}
	return shown
}

// private has parameters that are sensitive although the model does not say so. Whoever has the
// token of a subscription can confirm it. Messages are only for their receivers.
var private = []string{"Token", "Message", "Subject"}

var (
	password = regexp.MustCompile(`(://[^/?#\s:@]*):[^/?#\s]*@`)
	userinfo = regexp.MustCompile(`(?s)://.*@`)
)

// MaskURL masks the passwords of URLs in a text, as SNS shows them.
func MaskURL(text string) string { return password.ReplaceAllString(text, "$1:"+Masked+"@") }

// HideURL removes from a URL what may let somebody in: user, password and query. From a text that
// should be a URL, and is none, it rather removes too much.
func HideURL(text string) string {
	text = userinfo.ReplaceAllString(text, "://"+Masked+"@")
	if before, _, ok := strings.Cut(text, "?"); ok {
		return before + "?" + Masked
	}
	return text
}

func cut(value string) string {
	runes := []rune(value)
	if len(runes) <= maxShown {
		return value
	}
	return string(runes[:maxShown]) + "…"
}

// sensitivity follows the segments of a parameter's name through the model. Everything below a
// sensitive member is sensitive.
func sensitivity(t reflect.Type, segments []string) (sensitive, known bool) {
	f, ok := planOf(t).byParam[segments[0]]
	if !ok {
		return false, false
	}
	if f.Sensitive {
		return true, true
	}
	rest := segments[1:]
	if f.Flat && len(rest) > 0 {
		rest = segments // as if the number were behind the name of the elements
	}
	switch {
	case len(rest) == 0:
		return false, true
	case f.kind == kindStruct:
		return sensitivity(f.inner, rest)
	case f.kind == kindStructs && len(rest) > 2:
		return sensitivity(f.inner, rest[2:])
	case f.kind == kindStructs || f.kind == kindStrings:
		return false, len(rest) == 2
	}
	return false, false
}
