package verb

import (
	"context"
	"errors"
	"testing"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
)

func TestTheActionOfAVerb(t *testing.T) {
	for name, want := range map[string]string{"drain": "Drain", "forget-host": "ForgetHost", "": "", "-": "", "a--b": "AB"} {
		if got := Action(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// A body is one JSON value without unknown members, or nothing. The handler gets no other body.
func TestWhatAVerbTakes(t *testing.T) {
	var asked string
	var left time.Duration
	v := On(OfHome, func(ctx context.Context, _ front.Call, in admin.HostRequest) (string, error) {
		until, _ := ctx.Deadline()
		asked, left = in.Host, time.Until(until)
		return "done", nil
	})
	for body, want := range map[string]string{`{"host":"a"}`: "a", "": "", "{}": ""} {
		asked = "nothing"
		if out, err := v.Do(t.Context(), front.Call{}, []byte(body)); err != nil || out != "done" || asked != want {
			t.Errorf("%q: %v, %v, asked for %q", body, out, err, asked)
		}
	}
	if left <= 0 || left > front.Timeout {
		t.Errorf("it may take %v", left)
	}
	if _, err := v.Within(time.Hour).Do(t.Context(), front.Call{}, nil); err != nil || left <= front.Timeout {
		t.Errorf("a long one may take %v: %v", left, err)
	}
	for _, body := range []string{"{", `{"hots":"a"}`, `{"host":7}`, "{} {}", "[]"} {
		_, err := v.Do(t.Context(), front.Call{}, []byte(body))
		if known, ok := errors.AsType[*admin.Error](err); !ok || known.Code != admin.CodeInvalidRequest {
			t.Errorf("%q: %v", body, err)
		}
	}
}
