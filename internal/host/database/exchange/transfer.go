package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"howdah/internal/model/member"
	"howdah/internal/repository/store"
)

// askTimeout bounds how long control planes may take to say what a role opens.
const askTimeout = 10 * time.Second

// features says for what a role has to be.
var features = map[request]string{export: member.Export, imports: member.Import}

// transfer does what a member wishes, if its role allows it.
func (s *Server) transfer(ctx context.Context, gone context.CancelCauseFunc, t *talk, of string, w wish) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	access, err := s.config.Ask(asking, of, features[w.kind])
	cancel()
	if err != nil {
		return &unasked{err}
	}
	key, err := allowed(access, w)
	if err != nil {
		return err
	}
	objects, err := s.open(access)
	if err != nil {
		return err
	}
	defer objects.Close()
	p := newPatience(s.config.Patience, func() { gone(errMute) })
	defer p.end()
	if w.kind == imports {
		return t.imports(ctx, gone, objects, key, p)
	}
	done := func(bool) {}
	begun := func(upload string) {
		done = s.begins(note{Member: of, Endpoint: access.Endpoint, Bucket: access.Bucket, File: w.file, Upload: upload, Begun: time.Now().UTC()})
	}
	object, err := objects.PutTelling(ctx, key, &rows{t: t, patience: p, all: func() { go t.hear(gone) }}, begun)
	done(err == nil)
	if err != nil {
		return err
	}
	p.rest()
	return t.finish(object.Size) // only after the whole object is there is the member told
}

// open opens the bucket of a role.
func (s *Server) open(access member.Bucket) (*store.S3, error) {
	return store.OpenS3(store.S3Config{
		Endpoint: access.Endpoint, Region: access.Region, Bucket: access.Bucket, Prefix: access.Prefix, CA: access.CA,
		AccessKey: access.AccessKey, Secret: access.Secret, Timeout: s.config.Patience,
	})
}

// allowed returns the key, without the prefix of the role, of what a member wishes, if its role allows it.
func allowed(access member.Bucket, w wish) (key string, err error) {
	if w.bucket != access.Bucket {
		return "", fmt.Errorf("%w: the role %s is not for the bucket %.64q", errNotAllowed, access.Role, w.bucket)
	}
	key, inside := strings.CutPrefix(w.file, access.Prefix)
	if !inside {
		return "", fmt.Errorf("%w: the role %s is only for files that begin with %q", errNotAllowed, access.Role, access.Prefix)
	}
	if err := store.CheckKey(key); err != nil {
		return "", &misnamed{err}
	}
	return key, nil
}

// rows are the data of an export. While the member is waited for, nobody waits for the S3 server.
type rows struct {
	t        *talk
	patience *patience
	all      func() // called at the end of all data, once
	ended    bool
}

func (r *rows) Read(p []byte) (int, error) {
	if r.ended {
		return 0, io.EOF
	}
	if !r.patience.rest() {
		return 0, errMute
	}
	defer r.patience.work()
	n, err := r.t.Read(p)
	if errors.Is(err, io.EOF) {
		r.ended = true
		r.all()
	}
	return n, err
}

// imports sends the member an object.
func (t *talk) imports(ctx context.Context, gone context.CancelCauseFunc, objects store.Objects, key string, p *patience) error {
	go t.hear(gone)
	body, object, err := objects.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	defer body.Close()
	var size int64
	buf := make([]byte, maxFrame)
	for {
		p.work()
		n, err := body.Read(buf)
		p.rest()
		size += int64(n)
		if n > 0 {
			if err := t.write(data, buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && size != object.Size:
			return fmt.Errorf("%w: it sent %d of %d bytes", store.ErrAway, size, object.Size)
		case errors.Is(err, io.EOF):
			return t.finish(size)
		case err != nil:
			return err
		}
	}
}

// patience calls mute when the S3 server has worked for longer than it may without a pause.
type patience struct {
	most  time.Duration
	timer *time.Timer
}

// newPatience begins with the server at work.
func newPatience(most time.Duration, mute func()) *patience {
	return &patience{most, time.AfterFunc(most, mute)}
}

func (p *patience) work() { p.timer.Reset(p.most) }
func (p *patience) end()  { p.timer.Stop() }

// rest ends work. It reports whether the server had time left: else mute is called, or was just now.
func (p *patience) rest() bool { return p.timer.Stop() }
