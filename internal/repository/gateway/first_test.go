package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"howdah/internal/repository/store"
)

// Who was told that an object is not there does not replace one that came since.
func TestNobodyReplacesWhatCameSince(t *testing.T) {
	t.Parallel()
	r := newRig(t, directory(t), Config{})
	const path, key = "/main/db-1/archive/archive.info", "db-1/archive/archive.info"
	other := func(text string) {
		t.Helper()
		_, err := r.store.Put(t.Context(), key, strings.NewReader(text))
		must(t, err)
	}
	for _, looked := range []string{"HEAD", "GET"} {
		want := map[string]string{"HEAD": "404", "GET": "404 NoSuchKey"}[looked]
		r.want(t, want, looked, path, nil)
		other("another's")
		for range 2 { // it tries again without another look
			r.want(t, "412 PreconditionFailed", "PUT", path, []byte("mine"))
		}
		if text := r.want(t, "200", "GET", path, nil); text != "another's" {
			t.Errorf("it is now %q", text)
		}
		// It knows of the object now.
		r.want(t, "200", "PUT", path, []byte("mine"))
		r.want(t, "204", "DELETE", path, nil)
	}
	r.want(t, "404", "HEAD", path, nil)
	r.want(t, "200", "PUT", path, []byte("mine"))
	r.want(t, "200", "PUT", path, []byte("mine again, as no answer came"))
	r.want(t, "204", "DELETE", path, nil)
	other("another's")
	r.want(t, "200", "PUT", path, []byte("never looked"))
	for n := range 3 * maxAbsent {
		r.want(t, "404", "HEAD", fmt.Sprint(path, n), nil)
	}
	if n := len(r.holders[accessKey].absent); n > maxAbsent {
		t.Errorf("%d objects are remembered", n)
	}
}

// ambiguous stores one object, and says that it did not.
type ambiguous struct {
	store.Store
	said bool
}

var errNoAnswer = errors.New("no answer came")

func (a *ambiguous) Put(ctx context.Context, key string, body io.Reader) (store.Object, error) {
	o, err := a.Store.Put(ctx, key, body)
	if err == nil && !a.said {
		a.said, err = true, fmt.Errorf("%w: %w", store.ErrAway, errNoAnswer)
	}
	return o, err
}

// Whose write got no answer writes again.
func TestAWriteIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, &ambiguous{Store: directory(t)}, Config{})
	const path = "/main/db-1/archive/archive.info"
	r.want(t, "404", http.MethodHead, path, nil)
	r.want(t, "503 SlowDown", http.MethodPut, path, []byte("mine"))
	r.want(t, "200", http.MethodPut, path, []byte("mine"))
}
