package hostapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/testkit"
	"howdah/internal/testkit/hometest"
)

// offered is what a job offers in tests.
type offered struct {
	text  string
	fails bool // in the middle
	takes atomic.Int32
}

func (o *offered) Bytes() int64 { return int64(len(o.text)) }

func (o *offered) Taken() { o.takes.Add(1) }

func (o *offered) Send(_ context.Context, to io.Writer) error {
	if _, err := io.WriteString(to, o.text[:len(o.text)/2]); err != nil || o.fails {
		return errors.Join(err, errors.New("the disk is gone"))
	}
	_, err := io.WriteString(to, o.text[len(o.text)/2:])
	return err
}

// fetchHost starts an agent with a job that offers something. Its server gives up soon, but for what
// is sent.
func fetchHost(t *testing.T, shows certs.Pair, of *offered) (address string) {
	t.Helper()
	config, err := shows.ServerTLS()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(FetchHandler(func(job string) (Offer, error) {
		if job != "op-1/1" {
			return nil, errors.New("no such job")
		}
		return of, nil
	}, slog.New(slog.DiscardHandler)))
	server.Listener = tls.NewListener(server.Listener, config)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func TestFetchesFromAHost(t *testing.T) {
	h := hometest.New(t)
	of := &offered{text: strings.Repeat("a file of a database ", 100_000)}
	address := fetchHost(t, h.Issue(t, "agent:zone-a"), of)
	f := &Fetcher{Identity: h.Issue(t, "howdah-serve")}
	got, err := f.Fetch(t.Context(), "zone-a", address, "op-1/1")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	text, err := io.ReadAll(got)
	if err != nil || string(text) != of.text || got.Size != of.Bytes() {
		t.Errorf("%d of %d bytes: %v", len(text), got.Size, err)
	}
	if err := f.Taken(t.Context(), "zone-a", address, "op-1/1"); err != nil || of.takes.Load() != 1 {
		t.Errorf("taken %d times: %v", of.takes.Load(), err)
	}

	if _, err := f.Fetch(t.Context(), "zone-a", address, "op-2/1"); !errors.Is(err, ErrNotReady) {
		t.Errorf("another job: %v", err)
	}
	if err := f.Taken(t.Context(), "zone-a", address, "op-2/1"); !errors.Is(err, ErrNotReady) {
		t.Errorf("another job is taken: %v", err)
	}
	for name, c := range map[string]struct {
		by            certs.Pair
		host, address string
	}{
		"another host":     {h.Issue(t, "howdah-serve"), "zone-b", address},
		"nobody's address": {h.Issue(t, "howdah-serve"), "zone-a", testkit.FreeAddr(t)},
		"no address":       {h.Issue(t, "howdah-serve"), "zone-a", ""},
		"another agent":    {h.Issue(t, "agent:zone-b"), "zone-a", address},
		"a member":         {h.Issue(t, "member:db-1.m1"), "zone-a", address},
	} {
		stranger := &Fetcher{Identity: c.by}
		if got, err := stranger.Fetch(t.Context(), c.host, c.address, "op-1/1"); err == nil {
			got.Close()
			t.Errorf("%s fetches", name)
		}
		if err := stranger.Taken(t.Context(), c.host, c.address, "op-1/1"); err == nil {
			t.Errorf("%s takes", name)
		}
	}
	if of.takes.Load() != 1 {
		t.Errorf("taken %d times", of.takes.Load())
	}
	// An agent of an older version has logs only.
	old := logHost(t, h, h.Issue(t, "agent:zone-a"))
	if _, err := f.Fetch(t.Context(), "zone-a", old, "op-1/1"); err == nil || !strings.Contains(err.Error(), "older release") {
		t.Errorf("an old agent: %v", err)
	}
}

// What was not sent whole has no sum, and whoever reads it is told.
func TestWhatIsCutOffIsNotTakenForWhole(t *testing.T) {
	h := hometest.New(t)
	of := &offered{text: strings.Repeat("x", 1<<20), fails: true}
	address := fetchHost(t, h.Issue(t, "agent:zone-a"), of)
	f := &Fetcher{Identity: h.Issue(t, "howdah-serve")}
	got, err := f.Fetch(t.Context(), "zone-a", address, "op-1/1")
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if text, err := io.ReadAll(got); !errors.Is(err, ErrCut) || len(text) != len(of.text)/2 {
		t.Errorf("%d bytes: %v", len(text), err)
	}
}

// What a server passes on is checked on its way, and lasts longer than the server has patience for
// requests.
func TestPassedOn(t *testing.T) {
	from := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = SendSummed(r.Context(), w, 4, func(ctx context.Context, to io.Writer) error {
			for _, part := range []string{"ab", "cd"} {
				if _, err := io.WriteString(to, part); err != nil {
					return err
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(150 * time.Millisecond):
				}
			}
			return nil
		})
	}))
	t.Cleanup(from.Close)
	changed := false
	passes := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, from.URL, nil)
		if err != nil {
			t.Error(err)
			return
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		if changed {
			answer.Body = io.NopCloser(bytes.NewReader([]byte("abcx")))
		}
		in := ReadSummed(answer, func() {})
		defer in.Close()
		_ = SendSummed(r.Context(), w, in.Size, func(_ context.Context, to io.Writer) error {
			_, err := io.Copy(struct{ io.Writer }{to}, in)
			return err
		})
	}))
	passes.Config.ReadTimeout, passes.Config.WriteTimeout = 100*time.Millisecond, 100*time.Millisecond
	passes.Start()
	t.Cleanup(passes.Close)
	read := func() (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, passes.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		in := ReadSummed(answer, func() {})
		defer in.Close()
		text, err := io.ReadAll(in)
		return string(text), err
	}
	if text, err := read(); text != "abcd" || err != nil {
		t.Errorf("%q: %v", text, err)
	}
	changed = true
	if text, err := read(); !errors.Is(err, ErrCut) {
		t.Errorf("what was changed on its way: %q, %v", text, err)
	}
}
