package backups

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"howdah/internal/cli"
	"howdah/internal/cli/clitest"
	"howdah/internal/cli/screen"
)

// TestWhoeverWaitsNoLongerIsTold how to go on watching, and the drill goes on.
func TestWhoeverWaitsNoLongerIsTold(t *testing.T) {
	f := clitest.Start(t, clitest.Two)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, told bytes.Buffer
	o := &cli.Options{
		Screen: &screen.Screen{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &ending{&told, cancel}, Terminal: clitest.Terminal("")},
		Getenv: func(string) string { return "" }, Now: time.Now, Every: time.Millisecond, Program: "howdah",
	}
	code := cli.Run(ctx, o, cli.Root(o, Commands(o)...), []string{"--home", f.Home.Dir, "backup", "drill", "endless"})
	text := told.String()
	if code == 0 || !strings.Contains(text, "no longer waiting for the drill of endless: it goes on: howdah") || !strings.Contains(text, "operations show drill-endless-") {
		t.Errorf("exit %d, %q", code, text)
	}
}

// ending cancels once the last step is shown, as Ctrl-C does.
type ending struct {
	*bytes.Buffer
	cancel func()
}

func (e *ending) Write(p []byte) (int, error) {
	n, err := e.Buffer.Write(p)
	if strings.Contains(e.String(), "recording what was found") {
		e.cancel()
	}
	return n, err
}
