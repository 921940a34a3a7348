package hostapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/model/member"
	"howdah/internal/state"
)

// RepositoryRequest asks for what opens the part of a database in a repository.
type RepositoryRequest struct {
	// Database is a resource id. "" asks for no passphrase: a job that looks whether the host
	// reaches the repository has no database.
	Database   string `json:"database"`
	Repository string `json:"repository"`
}

const repositoryPath = "repository"

// repository gives a host what opens a repository for a database of which the host has work: a
// member that archives there, a member that is restored from there, or a job.
func (s *Server) repository(ctx context.Context, c call, in RepositoryRequest) (member.Repository, error) {
	host, err := c.agent()
	if err != nil {
		return member.Repository{}, err
	}
	if s.Repository == nil {
		return member.Repository{}, fmt.Errorf("%w: this control plane has no repositories", errForbidden)
	}
	if in.Repository == "" || strings.Contains(in.Repository, "/") {
		return member.Repository{}, fmt.Errorf("%w: a repository is needed", errBad)
	}
	works, err := s.worksOn(ctx, host, in)
	if err != nil {
		return member.Repository{}, err
	}
	if !works {
		return member.Repository{}, fmt.Errorf("%w: %s has no work on %s in the repository %s", errForbidden, host, in.Database, in.Repository)
	}
	access, err := s.Repository(ctx, in.Repository, in.Database)
	if errors.Is(err, state.ErrNotFound) {
		return member.Repository{}, fmt.Errorf("%w: there is no repository %s", errForbidden, in.Repository)
	}
	return access, err
}

// worksOn reports whether a host has a member or a job for which it needs the part of a database in
// a repository.
func (s *Server) worksOn(ctx context.Context, host string, in RepositoryRequest) (bool, error) {
	assignments, err := state.List[member.Assignment](ctx, s.Store, state.AssignPrefix(host))
	if err != nil {
		return false, err
	}
	for _, r := range assignments {
		if a := r.Value; archives(a, in) || restores(a, in) {
			return true, nil
		}
	}
	jobs, err := state.List[member.Job](ctx, s.Store, state.JobPrefix(host))
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(jobs, func(r state.Record[member.Job]) bool { return r.Value.Host == host && about(r.Value, in) }), nil
}

// archives reports whether a member is to archive its database's WAL there.
func archives(a member.Assignment, in RepositoryRequest) bool {
	return a.Want != member.Absent && a.Scope == in.Database && a.Archive != nil && slices.Contains(a.Archive.Repositories, in.Repository)
}

// restores reports whether a member's first data are to come from there.
func restores(a member.Assignment, in RepositoryRequest) bool {
	return a.Want != member.Absent && a.Restore != nil && a.Restore.Database == in.Database && a.Restore.Repository == in.Repository
}

// about reports whether the arguments of a job name the part of the database in the repository. Every
// kind of job writes them so (package model/backup): a job with two parts names the second one as its
// source.
func about(j member.Job, in RepositoryRequest) bool {
	var args struct {
		RepositoryRequest
		Source RepositoryRequest `json:"source"`
	}
	return json.Unmarshal(j.Args, &args) == nil && (args.RepositoryRequest == in || args.Source == in)
}

// Repository gets what opens a repository for a database of which the caller has work.
func (c *Client) Repository(ctx context.Context, database, name string) (member.Repository, error) {
	var answer member.Repository
	err := c.call(ctx, repositoryPath, RepositoryRequest{Database: database, Repository: name}, &answer)
	return answer, err
}
