package store

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// List implements Objects. Files that are no plain ones are not listed.
func (d *Directory) List(ctx context.Context, query Query) (Page, error) {
	base, _ := cutLast(query.Prefix)
	if checkText(query.Prefix) != nil || base != "" && CheckKey(base) != nil {
		return Page{}, nil // no key begins like this
	}
	t, err := d.tree()
	if err != nil {
		return Page{}, err
	}
	defer t.close()
	w := walk{tree: t, query: query, left: min(max(query.Max, 1), MaxList)}
	if base != "" {
		base += "/"
	}
	if err := w.dir(ctx, base); err != nil && !errors.Is(err, errEnough) {
		return Page{}, readKindOf(err)
	}
	return w.page, nil
}

// cutLast cuts a text at its last slash.
func cutLast(text string) (before, after string) {
	i := strings.LastIndexByte(text, '/')
	return text[:max(i, 0)], text[i+1:]
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk goes through a tree in the order of keys.
type walk struct {
	tree
	query Query
	left  int
	last  string
	page  Page
}

// entry is a name in a directory. The name of a directory ends in a slash: so it has its place
// among the others, as keys have.
type entry string

func (e entry) isDir() bool { return strings.HasSuffix(string(e), "/") }

// dir adds what is in a directory and below. base is "" or ends in a slash.
func (w *walk) dir(ctx context.Context, base string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, dir, err := w.read(base)
	if err != nil {
		return gone(err)
	}
	defer dir.Close()
	for _, e := range entries {
		path := base + string(e)
		switch {
		case !related(path, w.query.Prefix, e.isDir()):
		case path <= w.query.After && (!e.isDir() || w.query.Fold && w.folds(path) || !strings.HasPrefix(w.query.After, path)):
			// It was listed before, with all that is in it.
		case !e.isDir():
			err = w.file(dir, path, string(e))
		case w.query.Fold && w.folds(path):
			err = w.fold(ctx, path)
		default:
			err = w.dir(ctx, path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// related reports whether a path has the prefix, or what is in it may have it.
func related(path, prefix string, isDir bool) bool {
	return strings.HasPrefix(path, prefix) || isDir && strings.HasPrefix(prefix, path)
}

// folds reports whether a directory is listed as one prefix.
func (w *walk) folds(path string) bool { return len(path) > len(w.query.Prefix) }

// fold adds the prefix of a directory, if there is an object below it.
func (w *walk) fold(ctx context.Context, path string) error {
	inside := walk{tree: w.tree, query: Query{Prefix: path}, left: 1}
	if err := inside.dir(ctx, path); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if len(inside.page.Objects) == 0 {
		return nil
	}
	if err := w.count(path); err != nil {
		return err
	}
	w.page.Prefixes = append(w.page.Prefixes, path)
	return nil
}

// file adds an object.
func (w *walk) file(dir *os.File, key, name string) error {
	var s unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return gone(err)
	}
	object, err := objectOf(key, &s)
	if err != nil {
		return nil //nolint:nilerr // no plain file any more
	}
	if err := w.count(key); err != nil {
		return err
	}
	w.page.Objects = append(w.page.Objects, object)
	return nil
}

// count counts an entry. When there are enough, it says where the list goes on.
func (w *walk) count(path string) error {
	if w.left == 0 {
		w.page.Next = w.last
		return errEnough
	}
	w.left--
	w.last = path
	return nil
}

// read returns what is in a directory, in order. The caller closes the directory.
func (w *walk) read(base string) ([]entry, *os.File, error) {
	dir, err := w.tree.dir("./" + base)
	if err != nil {
		return nil, nil, err
	}
	all, err := dir.ReadDir(-1)
	if err != nil {
		dir.Close()
		return nil, nil, err
	}
	entries := make([]entry, 0, len(all))
	for _, e := range all {
		if path := base + e.Name(); CheckKey(path) != nil {
			continue // ours, or nothing that we made
		}
		if e.Type().IsRegular() {
			entries = append(entries, entry(e.Name()))
		} else if e.IsDir() {
			entries = append(entries, entry(e.Name()+"/"))
		}
	}
	slices.Sort(entries)
	return entries, dir, nil
}

// gone returns nil if what was to be read has gone meanwhile, or leads elsewhere.
func gone(err error) error {
	if errors.Is(readKindOf(err), ErrNotFound) {
		return nil
	}
	return err
}
