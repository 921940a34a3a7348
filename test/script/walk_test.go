package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/internal/testkit/patience"
)

// fake returns what is next in its list, and then the last answer again and again.
type fake struct {
	answers []any // an error, or an answer
	calls   []string
}

func (f *fake) Call(_ context.Context, service, action string, with map[string]any) (any, error) {
	f.calls = append(f.calls, fmt.Sprint(service, " ", action, " ", with))
	answer := f.answers[0]
	if len(f.answers) > 1 {
		f.answers = f.answers[1:]
	}
	if err, ok := answer.(error); ok {
		return nil, err
	}
	return answer, nil
}

func walk(t *testing.T, f *fake, steps ...Step) error {
	t.Helper()
	w := Walk{
		Name: CLI2, Client: f, Pause: 300 * time.Millisecond, Log: t.Logf, Given: Variables{"region": "here"},
		Late: map[string]func(context.Context) (any, error){
			"token": func(context.Context) (any, error) { return "secret", nil },
			"never": func(context.Context) (any, error) { return nil, errors.New("nothing came") },
		},
	}
	return w.Run(t.Context(), steps)
}

func TestWalkGoesThroughSteps(t *testing.T) {
	f := &fake{answers: []any{map[string]any{"Name": "one"}, map[string]any{}}}
	err := walk(t, f,
		Step{Sentence: "first", Call: "rds A", Want: map[string]any{"Name": "${name}"}},
		Step{Sentence: "what the client lacks", Call: "rds DescribeIntegrations"},
		Step{Sentence: "second", Call: "sns B", With: map[string]any{"Of": "${name} ${region} ${token}"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rds A map[]", "sns B map[Of:one here secret]"}, f.calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestWalkEndsAtTheFirstFailure(t *testing.T) {
	refusal := &Refusal{Code: "NotThere", Message: "it is not there"}
	for _, tt := range []struct {
		name   string
		step   Step
		answer any
		wrong  string // "": it succeeds
	}{
		{"the error that is wanted", Step{Fails: "NotThere"}, refusal, ""},
		{"another error", Step{Fails: "Other"}, refusal, "instead of Other: NotThere: it is not there"},
		{"an error that nobody wants", Step{}, refusal, "NotThere"},
		{"an answer in place of an error", Step{Fails: "NotThere"}, map[string]any{"A": 1.0}, `succeeds instead of answering NotThere: {"A":1}`},
		{"no error of the API", Step{Fails: "NotThere"}, errors.New("no connection"), "no connection"},
		{"another answer", Step{Want: map[string]any{"A": 2.0}}, map[string]any{"A": 1.0}, "the answer.A is 1, not 2"},
		{"any answer", Step{}, map[string]any{"A": 1.0}, ""},
		{"a variable without a value", Step{With: map[string]any{"A": "${none}"}}, nil, "none"},
		{"a late variable that does not come", Step{With: map[string]any{"A": "${never}"}}, nil, "nothing came"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{answers: []any{tt.answer}}
			tt.step.Sentence, tt.step.Call = "it", "rds A"
			err := walk(t, f, tt.step)
			if tt.wrong == "" && err != nil || tt.wrong != "" && (err == nil || !strings.Contains(err.Error(), tt.wrong) || !strings.Contains(err.Error(), "step 1, it")) {
				t.Errorf("the error is %v, not %q", err, tt.wrong)
			}
		})
	}
}

func TestWalkTriesAgain(t *testing.T) {
	want := map[string]any{"Status": "available"}
	busy := map[string]any{"Status": "creating"}
	step := Step{Sentence: "it", Call: "rds A", Want: want, Within: 5}
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answers: []any{&Refusal{Code: "InvalidState"}, busy, busy, want}}
		if err := walk(t, f, step); err != nil || len(f.calls) != 4 {
			t.Errorf("after %d calls: %v", len(f.calls), err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := walk(t, &fake{answers: []any{busy}}, step)
		within := patience.For(5 * time.Second)
		if took := time.Since(began); err == nil || took < within || took > within+time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := Walk{Client: &fake{answers: []any{busy}}, Pause: time.Second, Log: t.Logf}.Run(ctx, slices.Repeat([]Step{step}, 2))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when its time is over: %v", err)
		}
	})
}
