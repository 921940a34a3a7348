package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"howdah/internal/control/judge"
	"howdah/internal/control/plan"
	"howdah/internal/control/serve"
	"howdah/internal/identity/home"
)

// control is the control plane that is measured, in a process of its own. It prints where it
// answers questions about itself.
func control(args []string) error {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	dir := flags.String("home", "", "the home")
	detection := flags.Duration("detection", judge.DefaultDetection, "see judge.Config")
	if err := flags.Parse(args); err != nil {
		return err
	}
	h, err := home.Open(*dir)
	if err != nil {
		return err
	}
	seen := &recorder{began: time.Now()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.Handle("/seen", seen)
	go http.Serve(l, mux)
	fmt.Println("http://" + l.Addr().String())
	serve.SaveMemory()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return serve.Run(ctx, serve.Config{
		Home: h, Name: "s1", Address: h.Address(0, 1), Pool: "10.128.0.0/12", Detection: *detection,
		Policy: plan.Policy{Overcommit: true, ReplaceAfter: time.Minute}, Version: "bench", Log: slog.New(seen),
	})
}

// Seen is what the control plane logged about itself.
type Seen struct {
	// Leading is after how long it led. Ready is after how long it had looked at all databases.
	Leading, Ready time.Duration
	// Rounds are the reconciler's rounds since somebody last asked.
	Rounds []Round
}

// Round is one round of the reconciler.
type Round struct {
	LookedAt int64
	Took     time.Duration
}

// recorder is a slog.Handler that keeps what is measured. It prints what went wrong if HOWDAH_DEBUG
// is set.
type recorder struct {
	began time.Time

	mu   sync.Mutex
	seen Seen // guarded by mu
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }

func (r *recorder) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *recorder) WithGroup(string) slog.Handler { return r }

// Handle implements slog.Handler.
func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch record.Message {
	case "leading":
		r.seen.Leading = time.Since(r.began)
	case "round":
		var round Round
		record.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "looked_at":
				round.LookedAt = a.Value.Int64()
			case "took":
				round.Took = a.Value.Duration()
			}
			return true
		})
		if r.seen.Ready == 0 {
			r.seen.Ready = time.Since(r.began)
		}
		r.seen.Rounds = append(r.seen.Rounds, round)
	}
	if record.Level >= slog.LevelWarn && os.Getenv("HOWDAH_DEBUG") != "" {
		text := record.Message
		record.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
		fmt.Fprintln(os.Stderr, "control plane:", text)
	}
	return nil
}

// ServeHTTP answers with what was seen, and forgets the rounds.
func (r *recorder) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = json.NewEncoder(w).Encode(r.seen)
	r.seen.Rounds = nil
}
