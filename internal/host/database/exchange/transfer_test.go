package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/repository/store"
	"howdah/internal/testkit/s3test"
)

// A server cannot send the agent elsewhere, and have SQL read what is there.
func TestAServerThatSendsUsElsewhere(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, "for the host alone")
	}))
	defer inside.Close()
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect} {
		server := httptest.NewServer(http.RedirectHandler(inside.URL+"/inside", status))
		defer server.Close()
		s := newSite(t, &s3test.Server{}, server.URL, func(c *Config) {
			c.Ask = func(context.Context, string, string) (member.Bucket, error) {
				return member.Bucket{
					Role: "own", Endpoint: server.URL, Bucket: s3test.Bucket, Prefix: "own/", AccessKey: s3test.AccessKey, Secret: s3test.Secret,
				}, nil
			}
		})
		for _, kind := range []request{imports, export} {
			c := s.dial()
			c.ask(kind, s3test.Bucket, "own/x", "")
			if kind == export {
				c.say(data, "mine")
				c.say(end, "")
			}
			if got, last, text := c.hears(); len(got) > 0 || last != refused || strings.Contains(text, "alone") {
				t.Errorf("%d: %q %q %q", status, got, last, text)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// Rows that come after the time was up are not stored: the statement is told that it failed.
func TestRowsAfterTheTimeWasUp(t *testing.T) {
	t.Parallel()
	up := make(chan struct{})
	p := newPatience(time.Hour, func() { close(up) })
	defer p.end()
	r := &rows{t: &talk{left: []byte("rows")}, patience: p, all: func() { t.Error("the end of all data") }}
	buf := make([]byte, 2)
	if n, err := r.Read(buf); n != 2 || err != nil {
		t.Errorf("before: %d, %v", n, err)
	}
	p.timer.Reset(0)
	<-up
	if n, err := r.Read(buf); n != 0 || !errors.Is(err, errMute) {
		t.Errorf("after: %d, %v", n, err)
	}
}

// SQL is told why we refuse a name, and not what a server says of it.
func TestWhatIsToldOfNames(t *testing.T) {
	t.Parallel()
	_, err := allowed(member.Bucket{Bucket: "b", Prefix: "own/"}, wish{bucket: "b", file: "own/a//b"})
	if state, text := say(fmt.Errorf("transfer: %w", err)); state != "22023" || !strings.Contains(text, `has the part ""`) {
		t.Errorf("ours: %q %q", state, text)
	}
	err = fmt.Errorf("put in the bucket: %w: https response error, RequestID: 17, https://10.0.0.9", store.ErrName)
	if state, text := say(err); state != "22023" || text != store.ErrName.Error() {
		t.Errorf("the server's: %q %q", state, text)
	}
}
