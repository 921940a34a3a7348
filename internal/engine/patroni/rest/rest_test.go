package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCalls(t *testing.T) {
	type seen struct {
		Method, Path string
		Body         map[string]any
	}
	cases := []struct {
		name string
		call func(context.Context, Member) error
		want seen
	}{
		{"wake", func(ctx context.Context, m Member) error { return m.Wake(ctx) }, seen{"PATCH", "/config", map[string]any{"loop_wait": 1.0}}},
		{"restart", func(ctx context.Context, m Member) error { return m.Restart(ctx) }, seen{"POST", "/restart", map[string]any{}}},
		{
			"reinitialize", func(ctx context.Context, m Member) error { return m.Reinitialize(ctx) },
			seen{"POST", "/reinitialize", map[string]any{"force": true}},
		},
		{
			"switchover", func(ctx context.Context, m Member) error { return m.Switchover(ctx, "m1", "m2") },
			seen{"POST", "/switchover", map[string]any{"leader": "m1", "candidate": "m2"}},
		},
		{
			"switchover to anybody", func(ctx context.Context, m Member) error { return m.Switchover(ctx, "m1", "") },
			seen{"POST", "/switchover", map[string]any{"leader": "m1"}},
		},
		{"alive", func(ctx context.Context, m Member) error { return m.Alive(ctx) }, seen{"GET", "/liveness", nil}},
	}
	for _, c := range cases {
		var got seen
		status := http.StatusOK
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = seen{Method: r.Method, Path: r.URL.Path}
			if text, _ := io.ReadAll(r.Body); len(text) > 0 {
				if err := json.Unmarshal(text, &got.Body); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
			w.WriteHeader(status)
			io.WriteString(w, "no leader\n")
		}))
		m := Member{HTTP: server.Client(), URL: server.URL}
		for _, status = range []int{http.StatusOK, http.StatusAccepted} {
			if err := c.call(t.Context(), m); err != nil {
				t.Errorf("%s answered with %d: %v", c.name, status, err)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		for _, status = range []int{http.StatusPreconditionFailed, http.StatusServiceUnavailable} {
			err := c.call(t.Context(), m)
			if !errors.Is(err, ErrRefused) || errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "no leader") {
				t.Errorf("%s answered with %d: %v, want ErrRefused with the reason", c.name, status, err)
			}
		}
		server.Close()
		if err := c.call(t.Context(), m); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("%s without an answer: %v", c.name, err)
		}
	}
}

// The words are those of Patroni 4.1.5, asked for a restart in its bootstrap.
func TestBusyIsARefusalForNow(t *testing.T) {
	for answer, want := range map[string]bool{
		"bootstrap already in progress":        true,
		"bootstrap already in progress\n":      true,
		"no action is already in progress now": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, answer)
		}))
		err := Member{HTTP: server.Client(), URL: server.URL}.Restart(t.Context())
		server.Close()
		if !errors.Is(err, ErrRefused) || errors.Is(err, ErrBusy) != want {
			t.Errorf("%q: %v, busy should be %t", answer, err, want)
		}
	}
}

// A Patroni that says very much, or nothing at all, holds nobody up.
func TestBadAnswers(t *testing.T) {
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, strings.Repeat("x", 1<<20))
			return
		}
		<-ended
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	m := Member{HTTP: server.Client(), URL: server.URL}
	if err := m.Restart(t.Context()); !errors.Is(err, ErrRefused) || len(err.Error()) > 2000 {
		t.Errorf("an answer of a megabyte: %d bytes of error", len(err.Error()))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := m.Alive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no answer: %v", err)
	}
}
