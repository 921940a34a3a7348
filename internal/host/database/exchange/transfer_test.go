package exchange

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"howdah/internal/model/member"
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
