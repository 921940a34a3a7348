// Package unpack puts what is downloaded of a snapshot into a directory of this machine: a data
// directory that a plain PostgreSQL can be started on, or a dump.
//
// Invariants: nothing is at the place before all of it is there, and on the disk. Until then it is
// beside it, in a directory that only the caller may enter, and that nobody else writes to. Nothing is
// written outside of it, whatever the archive says. Whoever is killed leaves a directory that the next
// download to the same place removes.
package unpack

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"howdah/internal/cli/screen"
	"howdah/internal/host/tree"
	"howdah/internal/model/backup"
)

// Target is where a download goes.
type Target struct {
	Dir  string // its whole path
	part string
	lock *os.File
}

// mark is in the directory of a download that is not whole. Whoever writes there locks it.
const mark = ".howdah-download"

// dirMode is that of all directories that are written, and fileMode that of files.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// At is the place of a name. It must not be in use.
func At(name string) (*Target, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	if err := free(dir); err != nil {
		return nil, err
	}
	if info, err := os.Stat(filepath.Dir(dir)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no directory %s: make it first", filepath.Dir(dir)) //nolint:err113 // for people alone
	}
	// A download is made beside it, and renamed at the end.
	if info, err := os.Lstat(dir); err == nil && (!info.IsDir() || device(dir) != device(filepath.Dir(dir))) {
		return nil, fmt.Errorf("%s is a link, or another file system: name a directory in it that is not there yet", dir) //nolint:err113 // for people alone
	}
	return &Target{Dir: dir, part: dir + ".part"}, nil
}

// device is the file system of a directory; 0: nobody knows.
func device(dir string) uint64 {
	var stat unix.Stat_t
	if unix.Stat(dir, &stat) != nil {
		return 0
	}
	return stat.Dev
}

// free refuses a place where something is.
func free(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err == nil:
		return fmt.Errorf("%s is not empty: name a directory that is not there yet", dir) //nolint:err113 // for people alone
	}
	return fmt.Errorf("look at %s: %w", dir, err)
}

// Open takes the place, and removes what a download left there that was killed.
func (t *Target) Open() error {
	if err := os.Mkdir(t.part, dirMode); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make room for the download: %w", err)
	}
	// Whoever owns it could exchange what is written there, also for a link to anywhere.
	if info, err := os.Lstat(t.part); err != nil || !info.IsDir() || !ours(info) {
		return fmt.Errorf("%s is in the way, and is not a directory of yours: name another directory", t.part) //nolint:err113 // for people alone
	}
	path := filepath.Join(t.part, mark)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if entries, err := os.ReadDir(t.part); err != nil || len(entries) > 0 {
			return fmt.Errorf("%s is in the way, and no download has left it: remove it, or name another directory", t.part) //nolint:err113 // for people alone
		}
	}
	lock, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, fileMode)
	if err != nil {
		return fmt.Errorf("make room for the download: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return fmt.Errorf("another download writes to %s", t.Dir) //nolint:err113 // for people alone
	}
	t.lock = lock
	return errors.Join(os.Chmod(t.part, dirMode), t.clear())
}

func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// clear removes all but the mark.
func (t *Target) clear() error {
	entries, err := os.ReadDir(t.part)
	for _, e := range entries {
		if e.Name() != mark {
			err = errors.Join(err, os.RemoveAll(filepath.Join(t.part, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("remove what an earlier download left: %w", err)
	}
	return nil
}

// Close gives the place up. What is not whole is removed.
func (t *Target) Close() {
	if t.lock == nil {
		return
	}
	_ = os.RemoveAll(t.part)
	_ = t.lock.Close()
	t.lock = nil
}

var errForeign = errors.New("it is no download of a snapshot")

// Unpack writes an archive of about so many bytes beside the place. What was there of an earlier one is
// removed. far is told how many bytes are written. An error of reading is returned as it is.
func (t *Target) Unpack(from io.Reader, size int64, far func(done int64)) (*backup.DownloadNote, error) {
	if err := errors.Join(t.clear(), t.room(size)); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(t.part)
	if err != nil {
		return nil, fmt.Errorf("write the download: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written by it
	in := tar.NewReader(from)
	note, err := readNote(in)
	if err != nil {
		return nil, err
	}
	u := &unpacking{root: root, far: far}
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := u.one(in, header); err != nil {
			return nil, err
		}
	}
	// What follows the archive is its sum: without that it is not whole.
	if _, err := io.Copy(io.Discard, from); err != nil {
		return nil, err
	}
	if u.files != note.Files || u.bytes != note.Bytes {
		return nil, fmt.Errorf("%d files with %d bytes came, and not %d with %d: %w", u.files, u.bytes, note.Files, note.Bytes, errForeign)
	}
	return note, nil
}

// room refuses what the disk has no room for.
func (t *Target) room(size int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(t.part, &fs); err != nil {
		return fmt.Errorf("look how much is free at %s: %w", t.part, err)
	}
	if free := int64(fs.Bavail) * fs.Bsize; free < size {
		return fmt.Errorf("%s needs %s, and %s are free there", t.Dir, screen.Bytes(size), screen.Bytes(free)) //nolint:err113 // for people alone
	}
	return nil
}

// mostNote bounds the note, in bytes.
const mostNote = 8 << 20

func readNote(in *tar.Reader) (*backup.DownloadNote, error) {
	header, err := in.Next()
	if errors.Is(err, io.EOF) || err == nil && header.Name != backup.DownloadNoteName {
		return nil, errForeign
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, mostNote))
	if err != nil {
		return nil, err
	}
	var note backup.DownloadNote
	if err := json.Unmarshal(text, &note); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", backup.DownloadNoteName, errForeign, err)
	}
	return &note, nil
}

// unpacking is an archive under way.
type unpacking struct {
	root  *os.Root
	far   func(done int64)
	files int
	bytes int64
}

func (u *unpacking) one(in io.Reader, header *tar.Header) error {
	rest, ok := strings.CutPrefix(header.Name, backup.DownloadDataName+"/")
	name := filepath.Clean(filepath.FromSlash(rest))
	switch {
	case !ok || !filepath.IsLocal(name) || name == mark:
		return fmt.Errorf("%.200q: %w", header.Name, errForeign)
	case header.Typeflag == tar.TypeDir && name == ".":
		return nil
	case header.Typeflag == tar.TypeDir:
		if err := u.root.Mkdir(name, dirMode); err != nil {
			return fmt.Errorf("write the download: %w", err)
		}
		return nil
	case header.Typeflag != tar.TypeReg:
		return fmt.Errorf("%.200q: %w", header.Name, errForeign)
	}
	out, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("write the download: %w", err)
	}
	err = u.copy(out, in)
	if closed := out.Close(); err == nil && closed != nil {
		err = fmt.Errorf("write the download: %w", closed)
	}
	u.files++
	return err
}

// copy copies a file. Errors of reading are not those of writing: whoever calls tells them apart.
func (u *unpacking) copy(out io.Writer, in io.Reader) error {
	buffer := make([]byte, 256<<10)
	for {
		n, err := in.Read(buffer)
		if n > 0 {
			if _, err := out.Write(buffer[:n]); err != nil {
				return fmt.Errorf("write the download: %w", err)
			}
			u.bytes += int64(n)
			u.far(u.bytes)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Finish makes what was unpacked ready to be used, and puts it in its place.
func (t *Target) Finish(note backup.DownloadNote, about About) error {
	about.dir = t.Dir
	files := dumpFiles(note, about)
	if note.Form == backup.DataDirectory {
		files = dataFiles(note, about)
	}
	for name, text := range files {
		path := filepath.Join(t.part, name)
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte(text), fileMode)); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if note.Form == backup.Dump {
		if err := t.guarded(note); err != nil {
			return fmt.Errorf("write %s: %w", backup.GlobalsName, err)
		}
	}
	if err := errors.Join(tree.Sync(t.part), free(t.Dir)); err != nil {
		return fmt.Errorf("write the download to the disk: %w", err)
	}
	if err := os.Rename(t.part, t.Dir); err != nil {
		return fmt.Errorf("put the download in its place: %w", err)
	}
	_ = t.lock.Close()
	t.lock = nil
	// Without the mark nobody would know, after a kill, whose the directory beside the place is.
	if err := os.Remove(filepath.Join(t.Dir, mark)); err != nil {
		return fmt.Errorf("put the download in its place: %w", err)
	}
	return tree.Sync(filepath.Dir(t.Dir))
}

// guarded puts the guard before the roles of a dump.
func (t *Target) guarded(note backup.DownloadNote) error {
	path := filepath.Join(t.part, backup.GlobalsName)
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.MultiReader(strings.NewReader(guard(note)), in))
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
