package jobs

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	model "howdah/internal/model/backup"
	"howdah/internal/system/owner"
)

// ErrNoOffer says that a job has nothing that could be fetched: it is not ready yet, or over.
var ErrNoOffer = errors.New("nothing can be fetched from this job")

// Offers has what jobs of a host let control planes fetch, by the names of the jobs. The zero value is
// ready.
type Offers struct {
	mu  sync.Mutex
	all map[string]*Offer // guarded by mu
}

func (o *Offers) put(job string, of *Offer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[string]*Offer{}
	}
	o.all[job] = of
}

func (o *Offers) remove(job string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, job)
}

// Of returns what a job offers, or ErrNoOffer.
func (o *Offers) Of(job string) (*Offer, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	of, ok := o.all[job]
	if !ok {
		return nil, fmt.Errorf("%s: %w", job, ErrNoOffer)
	}
	return of, nil
}

// Offer is what a job lets be fetched. It is safe for concurrent use.
type Offer struct {
	note  model.DownloadNote
	user  *owner.User
	dir   string
	taken chan struct{}
	once  sync.Once

	mu   sync.Mutex
	sent int64     // guarded by mu: bytes of the newest fetch
	last time.Time // guarded by mu: when something was sent last
}

func newOffer(note model.DownloadNote, user *owner.User, dir string) *Offer {
	return &Offer{note: note, user: user, dir: dir, taken: make(chan struct{}), last: time.Now()}
}

// Bytes is how many bytes the files have.
func (o *Offer) Bytes() int64 { return o.note.Bytes }

// Taken says that somebody has all of it: then the job ends.
func (o *Offer) Taken() { o.once.Do(func() { close(o.taken) }) }

func (o *Offer) seen() (sent int64, last time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sent, o.last
}

func (o *Offer) sends(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent, o.last = o.sent+n, time.Now()
}

func (o *Offer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sent, o.last = 0, time.Now()
}

// Send writes the note and all files, as a tar archive.
func (o *Offer) Send(ctx context.Context, to io.Writer) error {
	o.begin()
	files, err := listFiles(o.user, o.dir)
	if err != nil {
		return fmt.Errorf("list what is fetched: %w", err)
	}
	text, err := json.Marshal(o.note)
	if err != nil {
		return err
	}
	out := tar.NewWriter(to)
	if err := out.WriteHeader(&tar.Header{Name: model.DownloadNoteName, Typeflag: tar.TypeReg, Mode: 0o600, Size: int64(len(text))}); err != nil {
		return err
	}
	if _, err := out.Write(text); err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := o.send(out, f); err != nil {
			return fmt.Errorf("send %s: %w", f.name, err)
		}
	}
	return out.Close()
}

func (o *Offer) send(out *tar.Writer, f found) error {
	name := path.Join(model.DownloadDataName, filepath.ToSlash(f.name))
	if f.dir {
		return out.WriteHeader(&tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o700})
	}
	in, err := openPlain(o.user, filepath.Join(o.dir, f.name))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: f.size}); err != nil {
		return err
	}
	buffer := make([]byte, sendAtOnce)
	for left := f.size; left > 0; {
		n, err := io.ReadFull(in, buffer[:min(left, sendAtOnce)])
		if err != nil {
			return fmt.Errorf("it has become shorter: %w", err)
		}
		if _, err := out.Write(buffer[:n]); err != nil {
			return err
		}
		left -= int64(n)
		o.sends(int64(n))
	}
	return nil
}

// sendAtOnce is how many bytes are read at once.
const sendAtOnce = 256 << 10

// found is a file or a directory below another one.
type found struct {
	name string // from there
	dir  bool
	size int64
}

var errOdd = errors.New("it is neither a file nor a directory")

// listFiles returns all that is in a directory, with its owner's rights: what is in a directory comes
// after it. Functions of users ran in the server, and may have left anything there.
func listFiles(user *owner.User, dir string) (all []found, err error) {
	err = user.Do(func() error {
		return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name, err := filepath.Rel(dir, p)
			if err != nil {
				return err
			}
			info, err := d.Info()
			switch {
			case err != nil:
				return err
			case info.IsDir():
				all = append(all, found{name: name, dir: true})
			case info.Mode().IsRegular():
				all = append(all, found{name: name, size: info.Size()})
			default:
				return fmt.Errorf("%s: %w", name, errOdd)
			}
			return nil
		})
	})
	return all, err
}

// openPlain opens a plain file with its owner's rights, and waits for nobody.
func openPlain(user *owner.User, path string) (file *os.File, err error) {
	err = user.Do(func() error {
		file, err = os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = file.Close()
		return nil, errors.Join(err, errOdd)
	}
	return file, nil
}
