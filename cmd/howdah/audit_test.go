package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"howdah/internal/cli/clitest"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
)

func TestFollowAudit(t *testing.T) {
	h, err := home.Ensure(t.TempDir()+"/home", home.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reader, writer := io.Pipe()
	o := newOptions(&screen.Screen{Stdin: strings.NewReader(""), Stdout: writer, Stderr: io.Discard, Terminal: clitest.Terminal("")})
	o.Getenv = func(string) string { return "" }
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, o, []string{"--home", h.Dir, "audit", "-f"})
		writer.Close()
	}()
	// Records that were there before the command began are not shown. So write until one is shown.
	written := make(chan struct{})
	go func() {
		defer close(written)
		for ctx.Err() == nil {
			clitest.WriteAudit(t, h)
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	lines := bufio.NewScanner(reader)
	for lines.Scan() && !strings.Contains(lines.Text(), "howdah:drain") {
		continue
	}
	cancel()
	for lines.Scan() {
		continue
	}
	<-written
	if got := <-code; got != 0 {
		t.Errorf("exit %d", got)
	}
}
