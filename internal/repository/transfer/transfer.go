// Package transfer copies objects from one store to another.
//
// Who wrote the source is not trusted. So the source decides neither where something is written nor
// how much: keys that do not lie below what was asked for are refused, a list that does not go
// forward is, and there are bounds for objects and bytes. A copy that was broken off goes on where
// it was: an object that the target has, with the same size, is not copied again.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"howdah/internal/repository/store"
)

var (
	// ErrTooMuch says that the source has more than may be copied.
	ErrTooMuch = errors.New("there is more than can be copied")
	// ErrList says that the source lists what it was not asked for.
	ErrList = errors.New("the list is not one of what was asked for")
	// ErrChanged says that an object is not as long as the list says.
	ErrChanged = errors.New("an object was changed while it was copied")
)

// Way says which objects to copy, and where to. The key of the copy begins with To where that of the
// object begins with From. Both end in a slash. Want says whether to copy an object, by what follows
// in its key; nil: all of them.
type Way struct {
	From, To string
	Want     func(rest string) bool
}

// Copy says what to copy. Source and Target are different stores, or no way leads into another.
type Copy struct {
	Source, Target store.Objects
	Ways           []Way
	// MaxObjects and MaxBytes bound all of it.
	MaxObjects, MaxBytes int64
	// Progress is told how many bytes of all are in the target.
	Progress func(done, of int64)
}

// Size is how much there is.
type Size struct{ Objects, Bytes int64 }

// atOnce is how many objects are copied at the same time.
const atOnce = 4

// Run copies all that the target does not have. It returns how much there is in all.
func (c Copy) Run(ctx context.Context) (Size, error) {
	all, err := c.measure(ctx)
	if err != nil {
		return all, err
	}
	var done, objects, bytes atomic.Int64
	group, working := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	err = c.each(working, func(o store.Object, key string) error {
		// It may have grown since it was measured.
		if objects.Add(1) > c.MaxObjects || bytes.Add(o.Size) > c.MaxBytes {
			return c.tooMuch()
		}
		group.Go(func() error {
			err := c.object(working, o, key)
			if err == nil {
				c.Progress(min(done.Add(o.Size), all.Bytes), all.Bytes)
			}
			return err
		})
		return working.Err()
	})
	if failed := group.Wait(); failed != nil {
		return all, failed // what the list says after it is that it was ended
	}
	return all, err
}

func (c Copy) measure(ctx context.Context) (all Size, err error) {
	err = c.each(ctx, func(o store.Object, _ string) error {
		all.Objects++
		all.Bytes += o.Size
		if o.Size < 0 || all.Objects > c.MaxObjects || all.Bytes > c.MaxBytes || all.Bytes < 0 {
			return c.tooMuch()
		}
		return nil
	})
	return all, err
}

func (c Copy) tooMuch() error {
	return fmt.Errorf("%w: more than %d objects, or than %d bytes", ErrTooMuch, c.MaxObjects, c.MaxBytes)
}

// each calls f for all objects to copy, with the keys of their copies.
func (c Copy) each(ctx context.Context, f func(o store.Object, key string) error) error {
	listed := int64(0)
	for _, way := range c.Ways {
		err := List(ctx, c.Source, way.From, func(o store.Object) error {
			// What is not wanted counts, too: nobody makes us list for ever.
			if listed++; listed > 2*c.MaxObjects {
				return c.tooMuch()
			}
			rest := strings.TrimPrefix(o.Key, way.From)
			if way.Want != nil && !way.Want(rest) {
				return nil
			}
			return f(o, way.To+rest)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mostEmpty is how many pages of a list may have nothing.
const mostEmpty = 100

// List calls f for each object whose key begins with a prefix, in order. It does not believe the
// store: see ErrList.
func List(ctx context.Context, s store.Objects, prefix string, f func(store.Object) error) error {
	last, empty := "", 0
	for query := (store.Query{Prefix: prefix, Max: store.MaxList}); ; {
		page, err := s.List(ctx, query)
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, o := range page.Objects {
			if !strings.HasPrefix(o.Key, prefix) || o.Key <= last || store.CheckKey(o.Key) != nil {
				return fmt.Errorf("%w: %.80q follows %.80q", ErrList, o.Key, last)
			}
			last = o.Key
			if err := f(o); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		if len(page.Objects) == 0 {
			empty++
		}
		if page.Next <= query.After || empty > mostEmpty {
			return fmt.Errorf("%w: it goes on after %.80q", ErrList, page.Next)
		}
		query.After = page.Next
	}
}

// object copies one, unless the target has it.
func (c Copy) object(ctx context.Context, o store.Object, key string) error {
	there, err := c.Target.Head(ctx, key)
	if err == nil && there.Size == o.Size {
		return nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("look for the copy of %s: %w", o.Key, err)
	}
	body, _, err := c.Source.Get(ctx, o.Key, 0, -1)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.Key, err)
	}
	defer body.Close()
	if _, err := c.Target.Put(ctx, key, &exact{from: body, left: o.Size}); err != nil {
		return fmt.Errorf("copy %s: %w", o.Key, err)
	}
	return nil
}

// exact reads as many bytes as were promised, and fails if there are more or less.
type exact struct {
	from io.Reader
	left int64
}

func (e *exact) Read(p []byte) (int, error) {
	if e.left == 0 {
		var more [1]byte
		if n, err := io.ReadFull(e.from, more[:]); n > 0 {
			return 0, ErrChanged
		} else if err != io.EOF {
			return 0, err
		}
		return 0, io.EOF
	}
	n, err := e.from.Read(p[:min(int64(len(p)), e.left)])
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		return n, ErrChanged
	}
	if errors.Is(err, io.EOF) {
		err = nil // the end is told by the next call
	}
	return n, err
}
