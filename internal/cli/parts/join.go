package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/host/hostapi"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state"
)

// membership is what a host or an edge keeps after it has joined. With it the part starts without
// the control plane.
type membership struct {
	HomeID  string   `json:"home_id"`
	Name    string   `json:"name"`
	Etcd    []string `json:"etcd"`
	Control []string `json:"control"`
}

const membershipFile = "member.json"

// joinOptions say how to become a member.
type joinOptions struct {
	dir   string // where certificate and membership are kept
	kind  hostapi.Kind
	name  string
	url   string
	token string
}

func (o joinOptions) subject() certs.Subject {
	return certs.Subject{CommonName: string(o.kind) + ":" + o.name}
}

// tlsDir is where the certificate is kept.
func (o joinOptions) tlsDir() string { return filepath.Join(o.dir, "tls") }

// ensureMember reads an earlier membership. Without one it joins, again and again until a control
// plane answers. A part that has a token joins again when its certificate ages. Others have the
// certificate renewed while they run.
func ensureMember(ctx context.Context, o joinOptions, log *slog.Logger) (membership, certs.Pair, error) {
	m, pair, err := loadMember(o.dir)
	canJoin := o.url != "" && o.token != ""
	if err == nil && m.Name == o.name && (pair.Fresh(o.subject(), time.Now()) || !canJoin && pair.Valid(time.Now())) {
		return m, pair, nil
	}
	if err == nil && !canJoin && m.Name == o.name {
		return m, pair, fmt.Errorf("the certificate of this membership is too old: --join and a token are needed: %w", cli.ErrUsage)
	}
	if !canJoin {
		return m, pair, fmt.Errorf("not a member of a home yet: --join and a token are needed: %w", cli.ErrUsage)
	}
	err = untilAnswered(ctx, o.url, o.token, log, func(ctx context.Context) error {
		m, pair, err = join(ctx, o)
		return err
	})
	return m, pair, err
}

// untilAnswered asks the control plane of --join until it answers with a yes or a no. The control
// plane may be starting itself.
func untilAnswered(ctx context.Context, address, token string, log *slog.Logger, ask func(context.Context) error) error {
	if _, err := home.TokenFingerprint(token); err != nil {
		return err
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("--join needs the URL of a control plane, as https://10.0.0.1:7443, not %q: %w", address, cli.ErrUsage)
	}
	for said := false; ; said = true {
		limited, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := ask(limited)
		cancel()
		if err == nil || errors.Is(err, hostapi.ErrRefused) || errors.Is(err, certs.ErrNotOurs) {
			return err
		}
		if !said {
			log.Info("waiting for the control plane", "url", address, "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func loadMember(dir string) (membership, certs.Pair, error) {
	var m membership
	text, err := os.ReadFile(filepath.Join(dir, membershipFile))
	if err != nil {
		return m, certs.Pair{}, fmt.Errorf("read membership: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, certs.Pair{}, fmt.Errorf("read membership: %w", err)
	}
	pair, err := certs.Load(filepath.Join(dir, "tls"))
	return m, pair, err
}

func join(ctx context.Context, o joinOptions) (membership, certs.Pair, error) {
	answer, pair, err := hostapi.Join(ctx, o.url, o.token, o.kind, o.name)
	if err != nil {
		return membership{}, certs.Pair{}, err
	}
	m := membership{HomeID: answer.HomeID, Name: o.name, Etcd: answer.Etcd, Control: answer.Control}
	dir := o.tlsDir()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return m, pair, fmt.Errorf("keep membership: %w", err)
	}
	if err := pair.Write(dir); err != nil {
		return m, pair, err
	}
	// Written last, because it makes the rest count.
	return m, pair, m.keep(o.dir)
}

// keep writes the membership, in one step.
func (m membership) keep(dir string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keep membership: %w", err)
	}
	path := filepath.Join(dir, membershipFile)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("keep membership: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keep membership: %w", err)
	}
	return nil
}

// followEtcd remembers where etcd serves. So the next start does not depend on the member that was
// there at the first start.
func followEtcd(ctx context.Context, dir string, client *clientv3.Client, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
		urls := slices.Sorted(slices.Values(client.Endpoints()))
		m, _, err := loadMember(dir)
		if err != nil || len(urls) == 0 || slices.Equal(urls, m.Etcd) {
			continue
		}
		m.Etcd = urls
		if err := m.keep(dir); err != nil {
			log.Warn("remember etcd", "error", err)
		}
	}
}

// keepIdentity renews the certificate of a member while it runs.
func keepIdentity(ctx context.Context, o joinOptions, identity *certs.Identity, client *clientv3.Client, log *slog.Logger) {
	if err := hostapi.KeepIdentity(ctx, identity, o.tlsDir(), &state.Store{Client: client}, log); err != nil {
		log.Error("keep certificate fresh", "error", err)
	}
}

// localJoin fills in how the parts of `howdah up` join, from the home on disk.
func localJoin(h *home.Home, o *joinOptions) error {
	tokens, err := h.Join()
	if err != nil {
		return err
	}
	o.url, o.token = "https://"+client.Address(h.Listen), tokens.AgentToken
	return nil
}
