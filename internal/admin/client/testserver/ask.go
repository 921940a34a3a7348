package testserver

import (
	"errors"
	"strings"
	"testing"

	"howdah/internal/admin/client"
)

// Call asks the server by a verb of the admin API.
func Call[Out any](t testing.TB, s *Server, verb string, in any) (Out, error) {
	t.Helper()
	var out Out
	err := s.Client.Admin(t.Context(), verb, in, &out)
	return out, err
}

// Must asks the server, and the test ends if it refuses.
func Must[Out any](t testing.TB, s *Server, verb string, in any) Out {
	t.Helper()
	out, err := Call[Out](t, s, verb, in)
	if err != nil {
		t.Fatalf("%s: %v", verb, err)
	}
	return out
}

// Refused checks that a call is refused with a code, and with words in the message or the hint. It returns
// the error.
func Refused(t testing.TB, s *Server, verb string, in any, code string, words ...string) error {
	t.Helper()
	_, err := Call[any](t, s, verb, in)
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.Code != code {
		t.Errorf("%s %+v: %v, want %s", verb, in, err, code)
		return err
	}
	for _, word := range words {
		if !strings.Contains(e.Message+"\n"+e.Hint, word) {
			t.Errorf("%s: %q with %q says nothing of %q", verb, e.Message, e.Hint, word)
		}
	}
	return err
}
