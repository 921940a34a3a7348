package job

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/host/pace"
	"howdah/internal/host/proc"
	"howdah/internal/model/member"
	"howdah/internal/testkit/hometest"
)

// A kind is tried without etcd: it is begun, ended in the middle as if by the end of its agent, and
// begun again.
func TestTry(t *testing.T) {
	w := newWorld(t, hometest.New(t))
	procs, err := proc.Open(proc.Config{Parent: w.order.Parent, StateDir: filepath.Join(w.order.Dir, "proc")})
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(wish{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	var adopts Kind
	for _, k := range kinds(w.order) {
		if k.Name == "adopts" {
			adopts = k
		}
	}
	try := func(ctx context.Context, resume bool) (json.RawMessage, error) {
		result, _, err := Try(ctx, adopts, member.Job{Name: "copy-1/fill", Kind: "adopts", Args: args}, Trial{
			Dir: filepath.Join(w.order.Dir, "jobs"), Procs: procs, Resume: resume, Log: slog.New(slog.DiscardHandler),
		})
		return result, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for !strings.Contains(w.journal("a"), "one") && pace.Sleep(t.Context(), 10*time.Millisecond) {
		}
	}()
	if _, err := try(ctx, false); !errors.Is(err, context.Canceled) {
		t.Fatalf("the agent ended: %v", err)
	}
	w.allow("a")
	ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := try(ctx, true)
	if err != nil || !strings.Contains(string(result), `"Found":true`) || !strings.Contains(string(result), "three") {
		t.Errorf("%s, %v", result, err)
	}
}
