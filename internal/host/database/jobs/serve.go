package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"howdah/internal/engine/backup"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/job"
	"howdah/internal/host/pace"
	"howdah/internal/identity/certs"
	model "howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/system/plainfile"
)

// programServe is the name of the program that lets a backup use a primary.
const programServe = "serve"

const (
	// servesWithin is how long a server may take to listen.
	servesWithin = 20 * time.Second
	servesLook   = 100 * time.Millisecond
	// servedFile has what is told of a server, in the directory of its job.
	servedFile = "served.json"
	// issuer is the authority of one server. Its key is forgotten at once.
	issuer = "backup of a standby"
)

var errServed = errors.New("the server for the backup of the standby ended")

// serve lets the backup of a standby use the primary that runs here. It goes on until the job is
// forgotten, also while the agent is started again: then the standby knows the server already.
func (h *Host) serve(ctx context.Context, call job.Call) (any, error) {
	var args model.ServeJob
	if err := call.Decode(&args); err != nil {
		return nil, err
	}
	r, err := h.memberPlace(ctx, call, member.ID(args.Database, args.Member))
	if err != nil {
		return nil, err
	}
	// Then the backup has ended, and its host is another one than that of whoever makes marks.
	defer h.Backed(args.Database)
	if call.Resume {
		return nil, r.serveOn(ctx)
	}
	ctx, end, err := r.living(ctx, never)
	if err != nil {
		return nil, err
	}
	defer end()
	prepared, served, err := r.prepareServer(ctx, args)
	if err != nil {
		return nil, err
	}
	defer r.unlink(prepared)
	// It ends with the program.
	running, ended := context.WithCancel(ctx)
	defer ended()
	go r.tellServed(running, served)
	_, err = r.do(ctx, programServe, prepared.Command)
	if err == nil {
		err = errServed
	}
	return nil, err
}

// serveOn goes on with a server that an earlier agent began.
func (r *run) serveOn(ctx context.Context) error {
	text, err := plainfile.Read(filepath.Join(r.call.Dir, servedFile))
	if err != nil {
		return errServed
	}
	if err := r.call.Tell(json.RawMessage(text)); err != nil {
		return err
	}
	dir, err := r.call.Place(r.user)
	if err != nil {
		return err
	}
	prepared := r.Engine.Serve(r.place, backup.Server{Dir: dir})
	defer r.unlink(prepared)
	return errors.Join(r.adopt(ctx, never, r.program(programServe, prepared.Command, nil)), errServed)
}

// unlink removes what a program leaves that was killed.
func (r *run) unlink(p backup.Prepared) {
	if r.call.Ends() {
		return // it goes on
	}
	for _, link := range p.Leaves {
		if err := r.user.Do(func() error { return removeUnlocked(link) }); err != nil {
			r.Log.Warn("remove what the backup of a standby left", "path", link.Path, "error", err)
		}
	}
}

// removeUnlocked removes a link that nobody needs.
func removeUnlocked(link backup.Link) error {
	lock, err := os.OpenFile(link.Lock, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("lock a link: %w", err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil
	} else if err != nil {
		return fmt.Errorf("lock a link: %w", err)
	}
	if err := os.Remove(link.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a link: %w", err)
	}
	return nil
}

// prepareServer writes what a server needs.
func (r *run) prepareServer(ctx context.Context, args model.ServeJob) (p backup.Prepared, served model.Served, err error) {
	dir, err := r.call.Place(r.user)
	if err != nil {
		return p, served, err
	}
	address, port, err := r.Port(ctx)
	if err != nil {
		return p, served, fmt.Errorf("find a port for the backup of a standby: %w", err)
	}
	ca, err := certs.New(issuer)
	if err != nil {
		return p, served, err
	}
	pair, err := ca.Issue(certs.Subject{
		CommonName: hostapi.ServerName(member.ID(args.Database, args.Member)), IPs: []net.IP{net.ParseIP(address)},
		DNSNames: []string{address}, // older releases of pgBackRest look there alone
		For:      certs.ServerOnly,
	})
	if err != nil {
		return p, served, err
	}
	s := backup.Server{
		Dir: dir, Address: address, Port: port, CertFile: filepath.Join(dir, certs.CertFile), KeyFile: filepath.Join(dir, certs.KeyFile),
		CAFile: filepath.Join(r.Own(member.ID(args.Database, args.Member)), certs.CAFile),
		Client: hostapi.MemberName(member.ID(args.Database, args.Standby)),
	}
	p = r.Engine.Serve(r.place, s)
	p.Files = append(p.Files, backup.File{Path: s.CertFile, Data: pair.CertPEM, Mode: 0o600}, backup.File{Path: s.KeyFile, Data: pair.KeyPEM, Mode: 0o600})
	served = model.Served{
		Address: address, Port: port, CA: pair.CAPEM, Dir: dir,
		DataDir: r.place.DataDir, SocketDir: r.place.SocketDir, PostgresPort: r.place.Port,
	}
	return p, served, r.writeAll(p.Files)
}

func (r *run) writeAll(files []backup.File) error {
	for _, f := range files {
		if err := r.user.ReplaceFile(f.Path, f.Data, f.Mode); err != nil {
			return fmt.Errorf("write %s: %w", filepath.Base(f.Path), err)
		}
	}
	return nil
}

// tellServed tells of a server once it listens.
func (r *run) tellServed(ctx context.Context, served model.Served) {
	ctx, cancel := context.WithTimeout(ctx, servesWithin)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(served.Address, strconv.Itoa(served.Port)))
		if err == nil {
			_ = conn.Close()
			break
		}
		if !pace.Sleep(ctx, servesLook) {
			return
		}
	}
	text, err := json.Marshal(served)
	if err == nil {
		err = plainfile.Replace(filepath.Join(r.call.Dir, servedFile), text, 0o600)
	}
	if err == nil {
		err = r.call.Tell(served)
	}
	if err != nil {
		r.Log.Warn("tell of the server for the backup of a standby", "error", err)
	}
}

// standby is the backup of a standby, whose primary is served.
func (r *run) standby(id string, served model.Served, take backup.Take) (backup.Command, error) {
	dir, err := r.call.Place(r.user)
	if err != nil {
		return backup.Command{}, err
	}
	ca, own := filepath.Join(dir, certs.CAFile), r.Own(id)
	p := r.Engine.BackupStandby(r.place, backup.Primary{
		Address: served.Address, Port: served.Port, ServerDir: served.Dir, DataDir: served.DataDir, SocketDir: served.SocketDir,
		PostgresPort: served.PostgresPort, Dir: dir, CAFile: ca,
		CertFile: filepath.Join(own, certs.CertFile), KeyFile: filepath.Join(own, certs.KeyFile),
	}, take)
	return p.Command, r.writeAll(append(p.Files, backup.File{Path: ca, Data: served.CA, Mode: 0o600}))
}
