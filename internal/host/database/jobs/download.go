package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/host/job"
	"howdah/internal/host/restore"
	"howdah/internal/host/tree"
	model "howdah/internal/model/backup"
	"howdah/internal/system/plainfile"
)

const (
	// foundFile is written when the server has nothing more to do, and readyFile when all is ready to be
	// fetched. They are root's.
	foundFile = "found.json"
	readyFile = "ready.json"
	// dumpDir is in the directory of the job's user, and partDump is one that is not whole.
	dumpDir  = "dump"
	partDump = "dump.part"
)

// fetchWithin is how long what is ready waits for somebody who fetches it, or goes on fetching.
const fetchWithin = 30 * time.Minute

var errUnfetched = fmt.Errorf("nobody fetched it within %s", fetchWithin)

// Fetched is the result of a download.
type Fetched struct {
	model.Ready
}

// download restores a backup, makes it what somebody wants to have, and lets that be fetched.
func (h *Host) download(ctx context.Context, call job.Call) (any, error) {
	var args model.DownloadJob
	if err := call.Decode(&args); err != nil {
		return nil, err
	}
	needed := args.Room
	if call.Resume {
		needed = 0 // it has taken some of it
	}
	ctx, end, err := h.withRoom(ctx, needed)
	if err != nil {
		return nil, err
	}
	defer end()
	d := &download{Host: h, call: call, args: args, own: filepath.Join(call.Dir, ownDir)}
	if err := d.open(); err != nil {
		return nil, err
	}
	if d.note == nil {
		if err := d.make(ctx); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return nil, err
		}
	}
	return d.offer(ctx)
}

// download is one under way.
type download struct {
	*Host
	call job.Call
	args model.DownloadJob
	own  string              // directory of the job's user
	note *model.DownloadNote // nil: it is not ready
}

// open finds what an earlier agent made ready.
func (d *download) open() error {
	if d.args.Encrypted {
		// It empties a directory whose key is gone.
		if err := d.Encrypt(d.call.Dir); err != nil {
			return fmt.Errorf("encrypt what is restored: %w", err)
		}
	}
	var err error
	d.note, err = d.read(readyFile)
	return err
}

// read reads a note; nil: it is not there.
func (d *download) read(name string) (*model.DownloadNote, error) {
	text, err := plainfile.Read(filepath.Join(d.call.Dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // see above
	}
	note := &model.DownloadNote{}
	if err == nil {
		err = json.Unmarshal(text, note)
	}
	if err != nil {
		return nil, fmt.Errorf("read what was made ready: %w", err)
	}
	return note, nil
}

func (d *download) write(name string, note *model.DownloadNote) error {
	text, err := json.Marshal(note)
	if err == nil {
		err = plainfile.Replace(filepath.Join(d.call.Dir, name), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("note what was made ready: %w", err)
	}
	return d.reached(name)
}

// dir is where the files are that are fetched.
func (d *download) dir() string {
	if d.args.Form == model.Dump {
		return filepath.Join(d.own, dumpDir)
	}
	return restore.DataDir(filepath.Join(d.own, drillDir))
}

// make restores the backup, and notes what is ready.
func (d *download) make(ctx context.Context) error {
	s, leave, err := d.scratch(ctx, d.call, d.args.DrillJob)
	if err != nil {
		return err
	}
	defer leave()
	dumped := d.args.Form == model.Dump && tree.Exists(d.dir())
	if !dumped {
		if err := d.restore(ctx, s); err != nil {
			return err
		}
	}
	note, err := d.read(foundFile)
	if err != nil {
		return err
	}
	if note == nil {
		return errForgotten
	}
	if d.args.Form == model.Dump {
		if !dumped {
			err = s.whole()
		}
		if err = errors.Join(err, d.reached("dumped")); err != nil {
			return err
		}
		s.discard(ctx) // the data are in the dump
	}
	return d.ready(s, note)
}

var errForgotten = errors.New("what was restored is not known any more")

// restore restores the backup, and has its server do what is asked for.
func (d *download) restore(ctx context.Context, s *scratch) error {
	s.request.LetUser = true
	s.request.Finish = func(ctx context.Context, conn *pgx.Conn) error {
		note := &model.DownloadNote{Form: d.args.Form, Major: d.args.Major, Superuser: superuser, Verifiers: d.args.Verifiers}
		t := &taking{scratch: s, asked: d.args.Downloading, note: note}
		if err := t.do(ctx, conn); err != nil {
			return err
		}
		return d.write(foundFile, note)
	}
	_, err := restore.Restore(ctx, s.request)
	if restore.Final(err) {
		return job.Final(err)
	}
	return errors.Join(err, d.reached("restored"))
}

// ready notes what can be fetched from now on.
func (d *download) ready(s *scratch, note *model.DownloadNote) error {
	files, err := listFiles(s.user, d.dir())
	if err != nil {
		return fmt.Errorf("list what can be fetched: %w", err)
	}
	for _, f := range files {
		if !f.dir {
			note.Files++
			note.Bytes += f.size
		}
	}
	d.note = note
	return d.write(readyFile, note)
}

// reached is called at each step, for tests: with an error the job ends there as if it were killed.
func (d *download) reached(step string) error {
	if d.at == nil {
		return nil
	}
	return d.at(step)
}

// offer lets the files be fetched, until they were.
func (d *download) offer(ctx context.Context) (any, error) {
	user, err := d.Give(d.own)
	if err != nil {
		return nil, fmt.Errorf("offer what can be fetched: %w", err)
	}
	o := newOffer(*d.note, user, d.dir())
	d.Offers.put(d.call.Name, o)
	defer d.Offers.remove(d.call.Name)
	if err := d.call.Tell(d.note.Ready); err != nil {
		return nil, err
	}
	tick := time.NewTicker(offerLook)
	defer tick.Stop()
	for {
		select {
		case <-o.taken:
			d.call.Progress(d.note.Bytes, d.note.Bytes, "bytes fetched")
			return Fetched{d.note.Ready}, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case now := <-tick.C:
			sent, last := o.seen()
			d.call.Progress(sent, d.note.Bytes, "bytes fetched")
			if now.Sub(last) > fetchWithin {
				return nil, job.Final(errUnfetched)
			}
		}
	}
}

// offerLook is how often it is looked whether somebody still fetches.
const offerLook = time.Second
