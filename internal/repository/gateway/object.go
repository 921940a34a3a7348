package gateway

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"howdah/internal/repository/store"
)

// sendSize is how much is sent at once, in bytes.
const sendSize = 256 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, sendSize); return &b }}

// get answers with an object, or says what is known of it.
func (c *call) get() error {
	if err := c.only(); err != nil {
		return err
	}
	s, _, err := c.allow(c.holder, c.repository, c.key, false)
	if err != nil {
		return err
	}
	if c.r.Method == http.MethodHead && c.r.Header.Get("Range") == "" {
		err = c.head(s)
	} else {
		err = c.send(s)
	}
	c.saw(err)
	return err
}

// head says what is known of an object.
func (c *call) head(s store.Store) error {
	object, err := s.Head(c.r.Context(), c.key)
	if err = c.done(err); err == nil {
		err = c.conditions(object)
	}
	if err != nil {
		return err
	}
	c.describe(object, object.Size)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// send answers with an object, or a part of it.
func (c *call) send(s store.Store) error {
	offset, length, ranged := parseRange(c.r.Header.Get("Range"))
	if offset < 0 { // the end of an object whose length is not known yet
		object, err := s.Head(c.r.Context(), c.key)
		if err := c.done(err); err != nil {
			return err
		}
		offset, length = max(0, object.Size+offset), -1
	}
	from, object, err := s.Get(c.r.Context(), c.key, offset, length)
	if err := c.done(err); err != nil {
		return err
	}
	defer from.Close()
	if err := c.conditions(object); err != nil {
		return err
	}
	if ranged && offset >= object.Size {
		c.w.Header().Set("Content-Range", "bytes */"+strconv.FormatInt(object.Size, 10))
		return errRange
	}
	size := object.Size - offset
	if length >= 0 {
		size = min(size, length)
	}
	c.describe(object, size)
	status := http.StatusOK
	if ranged {
		c.w.Header().Set("Content-Range", contentRange(offset, size, object.Size))
		status = http.StatusPartialContent
	}
	c.w.WriteHeader(status)
	if c.r.Method != http.MethodHead {
		c.copy(from, size)
	}
	return nil
}

// copy sends a body. If it cannot be read, the connection ends before its length is reached.
func (c *call) copy(from io.Reader, size int64) {
	controller := http.NewResponseController(c.w)
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	for size > 0 {
		c.asks()
		n, err := io.ReadFull(from, (*buffer)[:min(size, sendSize)])
		size -= int64(n)
		if err != nil {
			_ = c.done(err)
			panic(http.ErrAbortHandler)
		}
		_ = controller.SetWriteDeadline(time.Now().Add(c.config.Stall))
		if _, err := c.w.Write((*buffer)[:n]); err != nil {
			return // the client has gone
		}
	}
}

// describe sets the headers that say what an object is.
func (c *call) describe(object store.Object, size int64) {
	h := c.w.Header()
	h.Set("Etag", `"`+object.ETag+`"`)
	h.Set("Last-Modified", object.Modified.UTC().Format(http.TimeFormat))
	h.Set("Accept-Ranges", "bytes")
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.FormatInt(size, 10))
}

// conditions refuses an object that is not the one that was asked for.
func (c *call) conditions(object store.Object) error {
	etag := `"` + object.ETag + `"`
	if want := c.r.Header.Get("If-Match"); want != "" && want != "*" && strings.Trim(want, `"`) != object.ETag {
		return errPrecondition
	}
	if not := c.r.Header.Get("If-None-Match"); not == "*" || strings.Trim(not, `"`) == object.ETag {
		c.w.Header().Set("Etag", etag)
		return errNotModified
	}
	if since, err := http.ParseTime(c.r.Header.Get("If-Unmodified-Since")); err == nil && object.Modified.Truncate(time.Second).After(since) {
		return errPrecondition
	}
	return nil
}

func contentRange(offset, size, total int64) string {
	return "bytes " + strconv.FormatInt(offset, 10) + "-" + strconv.FormatInt(offset+size-1, 10) + "/" + strconv.FormatInt(total, 10)
}

// parseRange reads the header Range. An offset below 0 counts from the end; the length -1 is all.
// What is malformed, or has several ranges, counts as none, as the protocol has it.
func parseRange(text string) (offset, length int64, ranged bool) {
	text, ok := strings.CutPrefix(text, "bytes=")
	first, last, both := strings.Cut(text, "-")
	if !ok || !both {
		return 0, -1, false
	}
	if first == "" {
		n, err := strconv.ParseUint(last, 10, 62)
		if err != nil || n == 0 {
			return 0, -1, false
		}
		return -int64(n), -1, true
	}
	from, err := strconv.ParseUint(first, 10, 62)
	if err != nil {
		return 0, -1, false
	}
	if last == "" {
		return int64(from), -1, true
	}
	to, err := strconv.ParseUint(last, 10, 62)
	if err != nil || to < from {
		return 0, -1, false
	}
	return int64(from), int64(to-from) + 1, true
}

// put stores an object.
func (c *call) put() error {
	if err := c.only(); err != nil {
		return err
	}
	s, database, err := c.allow(c.holder, c.repository, c.key, true)
	if err != nil {
		return err
	}
	if err := c.plain(); err != nil {
		return err
	}
	b, err := c.body(c.config.MaxObject)
	if err != nil {
		return err
	}
	release, ok := c.take(c.holder, false)
	if !ok {
		return errBusy
	}
	defer release()
	if err := c.first(s); err != nil {
		return err
	}
	object, err := s.Put(c.r.Context(), c.key, b)
	c.read()
	if err := c.done(err); err != nil {
		return err
	}
	c.written(database, object)
	c.w.Header().Set("Etag", `"`+object.ETag+`"`)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// plain refuses what would be more than storing a body.
func (c *call) plain() error {
	for _, name := range []string{"X-Amz-Copy-Source", "If-Match", "If-None-Match", "X-Amz-Object-Lock-Mode", "X-Amz-Server-Side-Encryption-Customer-Algorithm"} {
		if c.r.Header.Get(name) != "" {
			return notDone("the header " + strings.ToLower(name))
		}
	}
	return nil
}

// written tells of an object.
func (c *call) written(database string, object store.Object) {
	c.config.Written(Object{
		AccessKey: c.claim.accessKey, Repository: c.repository, Database: database, Key: object.Key, Size: object.Size,
	})
}

// delete deletes an object.
func (c *call) delete() error {
	if err := c.only(); err != nil {
		return err
	}
	s, _, err := c.allow(c.holder, c.repository, c.key, true)
	if err != nil {
		return err
	}
	if err := c.done(s.Delete(c.r.Context(), c.key)); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
