package server

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
func (s *Server) RunAuthorities(ctx context.Context) error {
	if err := s.Cache.Loaded(ctx); err != nil {
		return err
	}
	for {
		wait := authoritiesEvery
		if err := errors.Join(s.keepAuthorities(ctx), kms.DeleteKeys(ctx, s.client, s.now())); err != nil && ctx.Err() == nil {
			s.Log.Warn("keep authorities, and delete keys", "error", err)
			wait = time.Minute
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// keepAuthorities makes what is missing. A home that cannot have others has its own.
func (s *Server) keepAuthorities(ctx context.Context) error {
	all, err := s.authorities.Certs()
	if err != nil {
		return err
	}
	for _, line := range spec.AuthorityLines {
		name := line.Authority(1)
		if newest, ok := spec.NewerAuthority(name, s.authorities.Names()); ok {
			name = newest
		}
		if cert := all[name]; cert != nil && s.now().After(cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore)/4)) {
			_, generation, _ := spec.ParseAuthority(name)
			name = line.Authority(generation + 1)
		}
		call, cancel := context.WithTimeout(ctx, authorityTimeout)
		err := s.authorities.Make(call, name)
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
