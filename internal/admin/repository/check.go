package repository

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/model/backup"
	"howdah/internal/model/member"
	"howdah/internal/repository/place"
	"howdah/internal/state"
)

// fromControl is what a check calls the control plane.
const fromControl = "control plane"

// check does with a repository what backups need: it reads, writes, lists and deletes an object. It
// asks each host that lives to read what the control plane wrote, and to write an answer. So it
// finds a directory that is not the same on all hosts.
func (s *service) check(ctx context.Context, _ front.Call, in admin.RepositoryRequest) (admin.RepositoryCheckAnswer, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.RepositoryCheckAnswer{}, err
	}
	r, err := s.named(in.Name)
	if err != nil {
		return admin.RepositoryCheckAnswer{}, err
	}
	out := admin.RepositoryCheckAnswer{Name: in.Name}
	out.Looks, err = s.looks(ctx, r.Value)
	return out, err
}

// looks returns how a repository looks to the control plane, and to each host.
func (s *service) looks(ctx context.Context, r backup.Repository) ([]admin.RepositoryCheck, error) {
	sealer, err := s.sealer()
	if err != nil {
		return nil, err
	}
	access, err := sealer.Access(r, "")
	if err != nil {
		return nil, err
	}
	var p place.Probe
	own := admin.RepositoryCheck{From: fromControl}
	opened, err := place.Open(access)
	if err == nil {
		err = within(ctx, func() (err error) { p, err = place.Begin(ctx, opened); return err })
	}
	if err != nil {
		own.Trouble, own.Hint = err.Error(), hintOf(r, err)
		return []admin.RepositoryCheck{own}, nil
	}
	all := s.askHosts(ctx, r, access, p)
	for i, look := range all {
		if look.Trouble != "" || look.Skipped {
			continue
		}
		if err := within(ctx, func() error { return p.Answered(ctx, opened, look.From) }); err != nil {
			all[i].Trouble, all[i].Hint = "what it writes is not seen by the control plane: "+err.Error(), sameHint(r)
		}
	}
	if err := within(ctx, func() error { return p.End(ctx, opened) }); err != nil {
		own.Trouble, own.Hint = err.Error(), hintOf(r, err)
	}
	return append([]admin.RepositoryCheck{own}, all...), nil
}

// askHosts asks all hosts that live, at the same time.
func (s *service) askHosts(ctx context.Context, r backup.Repository, access member.Repository, p place.Probe) []admin.RepositoryCheck {
	hosts := state.LoadAll[member.Host](s.Cache, state.HostRoot)
	all := make([]admin.RepositoryCheck, len(hosts))
	var asked sync.WaitGroup
	for i, h := range hosts {
		all[i].From = h.Value.Name
		alive, err := state.Load[member.Liveness](s.Cache, state.Live(h.Value.Name))
		if err != nil || !alive.Value.Alive {
			all[i].Skipped = true
			continue
		}
		asked.Go(func() {
			why, err := s.Hosts.Probe(ctx, h.Value.Name, h.Value.Listen, access, p)
			switch {
			case err != nil:
				all[i].Trouble, all[i].Hint = err.Error(), "start its agent again"
			case why != "":
				all[i].Trouble, all[i].Hint = why, hintForHost(r, h.Value.Name, why)
			}
		})
	}
	asked.Wait()
	slices.SortFunc(all, func(a, b admin.RepositoryCheck) int { return cmp.Compare(a.From, b.From) })
	return all
}

// hintForHost returns what to do on a host that cannot work with a repository.
func hintForHost(r backup.Repository, host, why string) string {
	switch {
	case strings.Contains(why, place.ErrElsewhere.Error()):
		return sameHint(r)
	case r.Kind == backup.Directory:
		return "mount the file system of the repository on " + host + " too, at " + r.Path + ", where root may write; or use an S3 server"
	}
	return "look whether " + host + " reaches " + r.Endpoint
}

// sameHint returns what to do if two parties see different places.
func sameHint(r backup.Repository) string {
	if r.Kind == backup.Directory {
		return "the directory must be the same file system on all hosts (NFS, for example): mount it everywhere at " + r.Path + ", or use an S3 server"
	}
	return "look whether " + r.Endpoint + " is the same server everywhere"
}

// failedLooks returns an error for what a repository that is to be added does not do.
func failedLooks(r backup.Repository, all []admin.RepositoryCheck) error {
	for _, look := range all {
		if look.Trouble != "" {
			return admin.NewError(admin.CodeRepositoryRefused, "The repository "+r.Name+" does not work from "+look.From+": "+look.Trouble+".", look.Hint)
		}
	}
	return nil
}
