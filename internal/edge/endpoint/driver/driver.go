// Package driver picks the implementation of endpoint.Forwarder that suits a machine and a user:
// the kernel if that is allowed, or else a proxy.
package driver

import (
	"context"
	"errors"
	"fmt"

	"howdah/internal/edge/endpoint"
	"howdah/internal/edge/endpoint/haproxy"
	"howdah/internal/edge/endpoint/nft"
)

// Open returns a Forwarder, and an Info about it for people. It touches nothing that an earlier
// process left before the first Sync or Remove. The error wraps endpoint.ErrInvalid if the
// configuration is wrong, and endpoint.ErrUnavailable if the machine has no driver for it. A home
// that changes its driver calls Remove of the old one first.
func Open(ctx context.Context, cfg endpoint.Config) (endpoint.Forwarder, endpoint.Info, error) {
	switch cfg.Driver {
	case nft.Name:
		return openNft(ctx, cfg)
	case haproxy.Name:
		return openHAProxy(ctx, cfg)
	case "":
	default:
		return nil, endpoint.Info{}, fmt.Errorf("%w: driver %q is neither %s nor %s", endpoint.ErrInvalid, cfg.Driver, nft.Name, haproxy.Name)
	}
	fw, info, err := openNft(ctx, cfg)
	if err == nil || !errors.Is(err, endpoint.ErrUnavailable) {
		return fw, info, err
	}
	cfg.Logger(haproxy.Name).Info("endpoints need a proxy here", "because", err)
	fw, info, other := openHAProxy(ctx, cfg)
	if other != nil {
		return nil, endpoint.Info{}, fmt.Errorf("open endpoints: %w; %w", err, other)
	}
	return fw, info, nil
}

// Remove removes from this machine what any driver made for a home. An edge may have been started
// with another driver than Open picks. A driver that is not available here has made nothing. No
// edge of the home may run.
func Remove(ctx context.Context, cfg endpoint.Config) error {
	var errs []error
	for _, cfg.Driver = range []string{nft.Name, haproxy.Name} {
		fw, _, err := Open(ctx, cfg)
		if errors.Is(err, endpoint.ErrUnavailable) {
			continue
		}
		if err == nil {
			err = fw.Remove(ctx)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func openNft(ctx context.Context, cfg endpoint.Config) (endpoint.Forwarder, endpoint.Info, error) {
	fw, err := nft.New(ctx, cfg)
	if err != nil {
		return nil, endpoint.Info{}, err
	}
	return fw, fw.Info(), nil
}

func openHAProxy(ctx context.Context, cfg endpoint.Config) (endpoint.Forwarder, endpoint.Info, error) {
	fw, err := haproxy.New(ctx, cfg)
	if err != nil {
		return nil, endpoint.Info{}, err
	}
	return fw, fw.Info(), nil
}
