package upkeep

import (
	"context"
	"errors"
	"time"

	"howdah/internal/aws/kms"
	"howdah/internal/identity/certs"
	"howdah/internal/model/spec"
)

const (
	// authoritiesEvery is how often the ages of authorities are looked at.
	authoritiesEvery = time.Hour
	// authorityTimeout bounds the making of one: an RSA key takes seconds.
	authorityTimeout = 2 * time.Minute
)

// RunAuthorities makes the authorities that every home has, and a newer one of each
// line whose newest has less than a quarter of its life left, and deletes KMS keys whose
// time has come. It runs in the control plane that leads, until ctx ends.
func (u *Upkeep) RunAuthorities(ctx context.Context) error {
	if err := u.State.Cache.Loaded(ctx); err != nil {
		return err
	}
	for {
		wait := authoritiesEvery
		if err := errors.Join(u.KeepAuthorities(ctx), kms.DeleteKeys(ctx, u.State, u.Looks.Now())); err != nil && ctx.Err() == nil {
			u.Log.Warn("keep authorities, and delete keys", "error", err)
			wait = time.Minute
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// KeepAuthorities makes what is missing. A home that cannot have others has its own.
func (u *Upkeep) KeepAuthorities(ctx context.Context) error {
	all, err := u.Authorities.Certs()
	if err != nil {
		return err
	}
	for _, line := range spec.AuthorityLines {
		name := line.Authority(1)
		if newest, ok := spec.NewerAuthority(name, u.Authorities.Names()); ok {
			name = newest
		}
		if cert := all[name]; cert != nil && u.Looks.Now().After(cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore)/4)) {
			_, generation, _ := spec.ParseAuthority(name)
			name = line.Authority(generation + 1)
		}
		call, cancel := context.WithTimeout(ctx, authorityTimeout)
		err := u.Authorities.Make(call, name)
		cancel()
		if errors.Is(err, certs.ErrNoSuccessor) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
