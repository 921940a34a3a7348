package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"howdah/internal/host/database/exchange"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/pace"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
)

const (
	// exchangeTry bounds the question to one control plane what a role opens.
	exchangeTry = 4 * time.Second
	// exchangeEvery is how often it is looked whether a member has its directory, and whose that is.
	exchangeEvery = 2 * time.Second
)

// exchangeDir is where the sockets for exports and imports are. Everybody may pass through, and only we
// may write there.
func (a *Host) exchangeDir() string { return filepath.Join(home.RunDir(a.HomeID), a.Name+".s3") }

// exchangeSocket is that of a member.
func (a *Host) exchangeSocket(id string) string { return filepath.Join(a.exchangeDir(), id) }

func (a *Host) openExchange() error {
	if err := home.MakeRunDir(a.HomeID); err != nil {
		return err
	}
	notes := a.Path("exports")
	if err := os.MkdirAll(notes, 0o700); err != nil {
		return fmt.Errorf("make a directory for exports: %w", err)
	}
	a.exchange = exchange.New(exchange.Config{Ask: a.askBucket, Log: a.Log, Notes: notes})
	return home.OpenWay(a.exchangeDir())
}

// askBucket asks the control planes, until one of them has decided.
func (a *Host) askBucket(ctx context.Context, of, feature string) (member.Bucket, error) {
	last := hostapi.ErrNoHost
	for _, c := range a.Controls() {
		try, cancel := context.WithTimeout(ctx, exchangeTry)
		access, err := c.Bucket(try, of, feature)
		cancel()
		if err == nil || errors.Is(err, hostapi.ErrRefused) {
			return access, err
		}
		last = err
	}
	return member.Bucket{}, fmt.Errorf("ask control planes what a role opens: %w", last)
}

// answerExchange answers the member's server on a socket of its own, as long as the member has a
// directory.
func (r *runner) answerExchange(ctx context.Context) {
	for {
		if uid, gid, ok := r.exchangeUser(); ok {
			if err := r.serveExchange(ctx, uid, gid); err != nil && ctx.Err() == nil {
				r.Log.Warn("exports and imports do not work", "error", err)
			}
		}
		if !pace.Sleep(ctx, exchangeEvery) {
			return
		}
	}
}

// exchangeUser is whom the member runs as; not ok: that is not settled yet.
func (r *runner) exchangeUser() (uid, gid int, ok bool) {
	if _, err := os.Lstat(r.Dir()); err != nil {
		return 0, 0, false
	}
	u := r.User()
	if u == nil {
		return os.Geteuid(), os.Getegid(), true
	}
	return u.UID, u.GID, u.UID > 0
}

// serveExchange answers until ctx ends, or the member has another user.
func (r *runner) serveExchange(ctx context.Context, uid, gid int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l, err := exchange.Listen(ctx, r.host.exchangeSocket(r.ID), uid, gid)
	if err != nil {
		return err
	}
	r.Go(func() {
		for pace.Sleep(ctx, exchangeEvery) {
			if now, _, ok := r.exchangeUser(); !ok || now != uid {
				cancel()
			}
		}
	})
	return r.host.exchange.Serve(ctx, l, r.ID, uid)
}
