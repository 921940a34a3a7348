package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"howdah/internal/repository/store"
)

const (
	// slowest is how slowly a body may come, in bytes a second.
	slowest = 64 << 10
	// maxDrained is how much of a refused body is read, so that the client gets to read why.
	maxDrained = 16 << 20
	// maxDraining is how long that may take.
	maxDraining = 10 * time.Second
)

// call is a request that was let in.
type call struct {
	*Gateway
	w      http.ResponseWriter
	r      *http.Request
	holder *holder
	claim  claim
	query  url.Values
	// repository and key are what the path names; key may be "".
	repository, key string
	// key of the signature, for chunks
	signing func() []byte
	// upload says that the request is about an upload.
	upload bool
	// asked is since when the repository alone is waited for, in nanoseconds.
	asked atomic.Int64
}

// sent is a body. Who waits for more of it does not wait for the repository.
type sent struct {
	io.ReadCloser
	*call
}

func (s sent) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.asks()
	return n, err
}

func (c *call) asks() { c.asked.Store(time.Now().UnixNano()) }

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := rand.Text()
	w.Header().Set("X-Amz-Request-Id", id)
	w.Header().Set("Server", "Howdah")
	c := &call{Gateway: g, w: w, r: r}
	c.asks()
	r.Body = sent{r.Body, c}
	if err := c.serve(); err != nil {
		refused := refusalOf(err, c.upload)
		if refused.status >= http.StatusInternalServerError {
			g.config.Log.Debug("a request was refused", "id", id, "method", r.Method, "path", r.URL.Path, "error", err)
		}
		c.drain(err)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(g.config.Stall))
		refused.answer(w, r, id)
	}
}

// serve finds out who asks, and does what is asked. After an error nothing was answered yet.
func (c *call) serve() error {
	controller := http.NewResponseController(c.w)
	// What has no deadlines is no network.
	_ = controller.SetWriteDeadline(time.Now().Add(c.config.Stall))
	claim, err := parseClaim(c.r, c.config.Now())
	if err != nil {
		return err
	}
	holder, secret, ok := c.Gateway.holder(claim.accessKey)
	if !ok {
		return errUnknownKey
	}
	if err := claim.verify(c.r, secret); err != nil {
		return err
	}
	if !c.enter(holder) {
		return errBusy
	}
	defer c.leave(holder)
	c.holder, c.claim = holder, claim
	c.signing = func() []byte { return claim.scope.Key(secret) }
	if c.repository, c.key, c.query, err = parseTarget(c.r.URL); err != nil {
		return err
	}
	if c.r.ContentLength != 0 {
		length, _ := strconv.ParseInt(c.r.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64)
		length = min(max(length, c.r.ContentLength), c.config.MaxObject)
		_ = controller.SetReadDeadline(time.Now().Add(c.config.Stall + time.Duration(length/slowest)*time.Second))
	}
	if c.key == "" {
		return c.serveBucket()
	}
	return c.serveObject()
}

// parseTarget returns what a URL names. key is "" if it names the bucket.
func parseTarget(u *url.URL) (repository, key string, query url.Values, err error) {
	repository, key, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	if repository == "" {
		return "", "", nil, errDenied
	}
	if key != "" && store.CheckKey(key) != nil {
		return "", "", nil, store.ErrName
	}
	query, err = url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", "", nil, malformed("The query string is malformed.")
	}
	for name, values := range query {
		if len(values) != 1 {
			return "", "", nil, malformed("%.80q is there more than once.", name)
		}
	}
	return repository, key, query, nil
}

// only refuses parameters that would change what is asked, and that the gateway does not know.
func (c *call) only(names ...string) error {
	for name := range c.query {
		known := name == "x-id"
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return notDone("the parameter " + name)
		}
	}
	return nil
}

func (c *call) serveBucket() error {
	switch {
	case c.r.Method == http.MethodGet && c.query.Has("location"):
		return c.location()
	case c.r.Method == http.MethodHead:
		return c.headBucket()
	case c.r.Method == http.MethodGet:
		return c.list()
	case c.r.Method == http.MethodPost && c.query.Has("delete"):
		return c.deleteMany()
	}
	return notDone("this request for a bucket")
}

func (c *call) serveObject() error {
	has := c.query.Has
	switch c.r.Method {
	case http.MethodGet, http.MethodHead:
		return c.get()
	case http.MethodPut:
		if has("uploadId") || has("partNumber") {
			return c.part()
		}
		return c.put()
	case http.MethodPost:
		if has("uploads") {
			return c.beginUpload()
		}
		return c.completeUpload()
	case http.MethodDelete:
		if has("uploadId") {
			return c.abortUpload()
		}
		return c.delete()
	}
	return notDone("the method " + c.r.Method)
}

// body returns the body of the request, of at most so many bytes.
func (c *call) body(most int64) (*body, error) {
	return newBody(c.r, c.claim, c.signing, most)
}

// small reads the whole body of a request that has a small one.
func (c *call) small(most int64) ([]byte, error) {
	b, err := c.body(most)
	if err != nil {
		return nil, err
	}
	release, ok := c.take(c.holder, true)
	if !ok {
		return nil, errBusy
	}
	defer release()
	text, err := io.ReadAll(b)
	c.read()
	return text, err
}

// read ends the deadline for the body, which would end the request later.
func (c *call) read() { _ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) }

// drain reads what is left of a body: a client that is still sending would not see the answer. The
// deadline holds for net/http, too, which reads some of a body before it answers.
func (c *call) drain(err error) {
	waits := min(c.config.Stall, maxDraining)
	if errors.Is(err, errSlow) {
		waits = 0
		c.w.Header().Set("Connection", "close")
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(waits))
	if waits > 0 && c.holder != nil && (c.r.Method == http.MethodPut || c.r.Method == http.MethodPost) {
		_, _ = io.CopyN(io.Discard, c.r.Body, maxDrained)
	}
}

// ErrMute says that a repository says nothing. It is a store.ErrAway.
var ErrMute = fmt.Errorf("%w: it says nothing", store.ErrAway)

// done tells what a store could not do. A client that has left waited for a store that says nothing,
// or had other reasons.
func (c *call) done(err error) error {
	_, refused := errors.AsType[*refusal](err)
	switch mute := time.Since(time.Unix(0, c.asked.Load())); {
	case err == nil || refused:
	case !errors.Is(c.r.Context().Err(), context.Canceled):
		c.failed(c.repository, err)
	case mute >= c.config.Mute && !c.takesLong():
		c.failed(c.repository, fmt.Errorf("%w, for %s by now", ErrMute, mute.Round(time.Second)))
	}
	return err
}

// takesLong reports whether a repository that works may need minutes for the request: to join an upload's
// parts, or to delete much.
func (c *call) takesLong() bool {
	return c.r.Method == http.MethodPost || c.r.Method == http.MethodDelete
}
