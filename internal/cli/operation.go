package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli/screen"
	"howdah/internal/model/operation"
)

// OperationID returns an id that shows people what an operation is about, and is no other's. It is
// chosen by whoever asks for the operation, so that a call that is sent again begins nothing more.
func OperationID(prefix, name string, now time.Time) string {
	const most = 40
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return prefix + "-" + plain[:min(len(plain), most)] + "-" + strconv.FormatInt(now.UnixNano(), 36)
}

// Watch returns the command that shows how far an operation is.
func (o *Options) Watch(operation string) string {
	return o.Pasteable("howdah operations show " + operation + " --watch")
}

// Await waits until an operation is done, as long as that takes, and shows its steps in the words of
// text, and how far they are. It fails if the operation does. Whoever waits no longer is told how to go
// on watching.
func (o *Options) Await(cmd *cobra.Command, operation, what string, text func(admin.Operation) string) error {
	_, err := o.AwaitUntil(cmd, operation, what, text, func(admin.Operation) bool { return false })
	return err
}

// AwaitUntil is Await, but until the operation is as far as it is waited for, or done.
func (o *Options) AwaitUntil(
	cmd *cobra.Command, operation, what string, text func(admin.Operation) string, until func(admin.Operation) bool,
) (now admin.Operation, err error) {
	api, err := o.API(cmd)
	if err != nil {
		return now, err
	}
	p := o.Screen.Begin(o.Now)
	defer p.End()
	pace := Pace{Now: o.Now}
	slow := *o
	slow.Every *= 5 // it may take hours
	err = slow.Poll(cmd.Context(), what, func() (bool, error) {
		var out admin.OperationsAnswer
		if err := api.Admin(cmd.Context(), admin.VerbOperations, admin.OperationsRequest{ID: operation}, &out); err != nil {
			return false, err
		}
		if len(out.Operations) != 1 {
			return false, fmt.Errorf("%d operations have the id %s", len(out.Operations), operation)
		}
		now = out.Operations[0]
		if !now.Ended && until(now) {
			return true, nil
		}
		if !now.Ended {
			p.Step(text(now), now.StepBegan)
			p.Far(pace.Text(now))
			if now.Trouble != "" {
				p.Note(now.Trouble)
			}
		}
		return now.Ended, nil
	})
	switch {
	case cmd.Context().Err() != nil:
		return now, fmt.Errorf("no longer waiting for %s: it goes on: %s", what, o.Watch(operation))
	case err != nil:
		return now, err
	case now.Ended && now.State != "done":
		word := map[string]string{"failed": "failed", "cancelled": "was cancelled"}[now.State]
		return now, fmt.Errorf("%s %s: %s: see %s", what, word, now.Reason, o.Pasteable("howdah operations show "+operation))
	}
	return now, nil
}

// Pace tells how far an operation is, and how long its bytes will take. It goes by what it has seen,
// as nobody notes when a unit began.
type Pace struct {
	Now func() time.Time

	unit  string
	since time.Time
	first int64
}

// Text returns how many bytes are done, of how many, or what share of parts, and the time left. It is ""
// for other units.
func (f *Pace) Text(p admin.Operation) string {
	if p.Unit != f.unit || f.since.IsZero() || p.Done < f.first {
		f.unit, f.since, f.first = p.Unit, f.Now(), p.Done
	}
	var text string
	switch parts := strings.HasPrefix(p.Unit, operation.Parts); {
	case parts && p.Of > 0:
		text = fmt.Sprintf("%d %%", 100*p.Done/p.Of)
	case !strings.HasPrefix(p.Unit, "bytes"):
		return ""
	case p.Of <= 0:
		return screen.Bytes(p.Done)
	default:
		text = fmt.Sprintf("%s of %s (%d %%)", screen.Bytes(p.Done), screen.Bytes(p.Of), 100*p.Done/p.Of)
	}
	past, done := f.Now().Sub(f.since), p.Done-f.first
	if past <= 0 || done <= 0 || p.Done >= p.Of {
		return text
	}
	return text + ", about " + screen.Span(time.Duration(float64(past)*float64(p.Of-p.Done)/float64(done))) + " left"
}
