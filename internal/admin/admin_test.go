package admin

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestErrorsHaveTheStatusOfTheirCode(t *testing.T) {
	for code, want := range map[string]int{
		CodeHostNotFound: http.StatusNotFound, CodeUnknownVerb: http.StatusNotFound, CodeOnlyCopy: http.StatusConflict,
		CodeHostAlive: http.StatusConflict, CodeNotDisposable: http.StatusForbidden, CodeWrongService: http.StatusForbidden,
		CodeUnavailable: http.StatusServiceUnavailable, CodeInternal: http.StatusInternalServerError,
		CodeInvalidRequest: http.StatusBadRequest, "AnyOther": http.StatusBadRequest,
	} {
		e := NewError(code, "Text.", "")
		if e.Status != want || e.Error() != code+": Text." {
			t.Errorf("%s: %d, %q", code, e.Status, e.Error())
		}
	}
}

func TestStatusIsNotInTheBody(t *testing.T) {
	text, err := json.Marshal(NewError(CodeHostAlive, "Text.", "do this"))
	if err != nil || string(text) != `{"code":"HostAlive","message":"Text.","hint":"do this"}` {
		t.Errorf("%s, %v", text, err)
	}
}

var snake = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// TestNamesAreSnakeCase looks at every field of every answer. No field has a name that a secret
// would have.
func TestNamesAreSnakeCase(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, v := range []any{
		Status{},
		DatabaseRequest{},
		DatabaseAnswer{},
		FailoversRequest{},
		FailoversAnswer{},
		HostRequest{},
		HostOffRequest{},
		HostOffAnswer{},
		DrainRequest{},
		DrainAnswer{},
		WipeAnswer{},
		Error{},
		BackupsRequest{},
		BackupsAnswer{},
		BackupStatus{},
		BackupBeginRequest{},
		DrillsAnswer{},
		SnapshotsAnswer{},
	} {
		names(t, reflect.TypeOf(v), seen)
	}
	if len(seen) < 15 {
		t.Errorf("only %d structures were looked at", len(seen))
	}
}

func names(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() || seen[typ] {
		return
	}
	seen[typ] = true
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if !snake.MatchString(name) {
			t.Errorf("%s.%s is called %q", typ, field.Name, name)
		}
		for _, word := range []string{"password", "token", "secret", "verifier"} {
			if strings.Contains(name, word) {
				t.Errorf("%s.%s would show a %s", typ, field.Name, word)
			}
		}
		names(t, field.Type, seen)
	}
}
