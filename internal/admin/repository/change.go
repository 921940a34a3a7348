package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/model/spec"
	"howdah/internal/repository/store"
	"howdah/internal/state"
)

// makeDefault makes a repository the one that new databases are backed up to.
func (s *service) makeDefault(ctx context.Context, c front.Call, in admin.RepositoryRequest) (admin.Repository, error) {
	var out admin.Repository
	err := s.Retry(ctx, func() error {
		r, err := s.named(in.Name)
		if err != nil {
			return err
		}
		if r.Value.Default {
			out = s.shown(r.Value)
			return nil
		}
		if err := s.hides(r.Value); err != nil {
			return err
		}
		all := state.LoadAll[backup.Repository](s.Cache, state.RepositoryRoot)
		only := backup.Repository{Name: r.Value.Name, Default: true}
		r.Value.Default = true
		out = s.shown(r.Value)
		s.Log.Info("repository is the default", "name", in.Name, "by", c.Who.Key)
		return s.Commit(ctx, append(changed(all, only), state.Swap(r.Key, r.Revision, r.Value))...)
	})
	return out, err
}

// hides refuses a repository that encrypts nothing as the default one, if there are databases whose
// storage is encrypted: their backups would lie there in the clear.
func (s *service) hides(r backup.Repository) error {
	if r.Encrypted() {
		return nil
	}
	var names []string
	for _, i := range state.ViewAll[spec.Instance](s.Cache, state.InstanceRoot) {
		if i.Value.StorageKey != "" && i.Value.Cluster == "" {
			names = append(names, i.Value.Name)
		}
	}
	for _, c := range state.ViewAll[spec.Cluster](s.Cache, state.ClusterRoot) {
		if c.Value.StorageKey != "" {
			names = append(names, c.Value.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	more := ""
	if len(names) > 3 {
		names, more = names[:3], fmt.Sprintf(" and %d more", len(names)-3)
	}
	return admin.NewError(admin.CodeRepositoryRefused,
		fmt.Sprintf("The repository %s encrypts nothing, and so cannot be the default one: the storage of %s%s is encrypted, and its backups have to be.", r.Name, strings.Join(names, ", "), more),
		"add one without --unencrypted, and make that the default")
}

// remove forgets a repository that nothing needs. Its files stay unless they are to be deleted.
func (s *service) remove(ctx context.Context, c front.Call, in admin.RepositoryRemoveRequest) (admin.RepositoryRemoveAnswer, error) {
	var out admin.RepositoryRemoveAnswer
	var r state.Record[backup.Repository]
	removable := func() (err error) {
		if r, err = s.named(in.Name); err != nil {
			return err
		}
		if u := s.uses(in.Name); u.any() {
			return admin.NewError(admin.CodeRepositoryInUse, fmt.Sprintf("The repository %s is in use by %s.", in.Name, u.text()),
				"delete the snapshots and the automated backups, or wait until they have expired; databases are moved by another default repository and a new backup")
		}
		others := len(state.LoadAll[backup.Repository](s.Cache, state.RepositoryRoot)) - 1
		if r.Value.Default && others > 0 {
			return admin.NewError(admin.CodeRepositoryInUse, "The repository "+in.Name+" is the default one.", "choose another one first: `howdah repository default NAME`")
		}
		return nil
	}
	if err := s.Fresh(ctx); err != nil {
		return out, err
	}
	if err := removable(); err != nil {
		return out, err
	}
	out.Repository = s.shown(r.Value)
	if in.DryRun {
		return out, nil
	}
	if in.DeleteFiles {
		if err := s.mine(ctx, r.Value); err != nil {
			return out, refused(r.Value, err)
		}
	}
	err := s.Retry(ctx, func() error {
		if err := removable(); err != nil {
			return err
		}
		return s.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
	if err != nil {
		return out, err
	}
	s.Log.Info("repository removed", "name", in.Name, "id", r.Value.ID, "files", in.DeleteFiles, "by", c.Who.Key)
	if !in.DeleteFiles {
		return out, nil
	}
	out.Objects, err = s.deleteFiles(ctx, r.Value)
	if err != nil {
		return out, admin.NewError(admin.CodeRepositoryRefused, fmt.Sprintf("The repository %s is removed from the home, and %d of its files are deleted; the others are not: %s.", in.Name, out.Objects, err),
			"delete them by hand")
	}
	return out, nil
}

// mine returns an error if a place is not the repository, or cannot be reached.
func (s *service) mine(ctx context.Context, r backup.Repository) error {
	return within(ctx, func() error {
		opened, err := s.open(r)
		if err != nil {
			return err
		}
		return store.CheckMarker(ctx, opened, r.ID)
	})
}

// deleteFiles deletes everything in a repository, its marker last. It returns how many objects it
// deleted.
func (s *service) deleteFiles(ctx context.Context, r backup.Repository) (n int, err error) {
	opened, err := s.open(r)
	if err != nil {
		return 0, err
	}
	after := ""
	for {
		page, err := opened.List(ctx, store.Query{After: after, Max: store.MaxList})
		if err != nil {
			return n, err
		}
		var keys []string
		for _, o := range page.Objects {
			if o.Key != store.MarkerKey {
				keys = append(keys, o.Key)
			}
		}
		if len(keys) > 0 {
			if err := opened.Delete(ctx, keys...); err != nil {
				return n, err
			}
		}
		n += len(keys)
		if page.Next == "" {
			break
		}
		after = page.Next
	}
	return n, opened.Delete(ctx, store.MarkerKey)
}

// exportKey tells the key of a repository, and notes that it did.
func (s *service) exportKey(ctx context.Context, c front.Call, in admin.RepositoryRequest) (admin.RepositoryKeyAnswer, error) {
	out := admin.RepositoryKeyAnswer{Name: in.Name}
	err := s.Retry(ctx, func() error {
		r, err := s.named(in.Name)
		if err != nil {
			return err
		}
		if !r.Value.Encrypted() {
			return admin.NewError(admin.CodeInvalidRequest, "Nothing in the repository "+in.Name+" is encrypted: it has no key.", "")
		}
		sealer, err := s.sealer()
		if err != nil {
			return err
		}
		key, _, err := sealer.Open(r.Value)
		if err != nil {
			return admin.NewError(admin.CodeRepositoryKey, "The home cannot open the key of the repository "+in.Name+".", "give it the key as it was exported: `howdah repository key import "+in.Name+"`")
		}
		out.Text = repository.Exported{Name: r.Value.Name, ID: r.Value.ID, Key: key}.Text()
		r.Value.Exported = c.Now.UTC()
		s.Log.Info("key of a repository exported", "name", in.Name, "by", c.Who.Key)
		return s.Commit(ctx, state.Swap(r.Key, r.Revision, r.Value))
	})
	return out, err
}

// importKey gives a repository its key again, if the home cannot open the one that it has.
func (s *service) importKey(ctx context.Context, c front.Call, in admin.RepositoryKeyRequest) (admin.Repository, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.Repository{}, err
	}
	r, err := s.named(in.Name)
	if err != nil {
		return admin.Repository{}, err
	}
	key, err := givenKey(admin.RepositoryAddRequest{KeySecret: in.KeySecret})
	if err != nil || in.KeySecret == "" {
		return admin.Repository{}, cmpError(err, admin.NewError(admin.CodeRepositoryKey, "No key was given.", ""))
	}
	if key.ID != r.Value.ID {
		return admin.Repository{}, refused(r.Value, errWrongKey)
	}
	sealer, err := s.sealer()
	if err != nil {
		return admin.Repository{}, err
	}
	_, secret, err := sealer.Open(backup.Repository{
		Name: r.Value.Name, ID: r.Value.ID, Endpoint: r.Value.Endpoint, Bucket: r.Value.Bucket, AccessKey: r.Value.AccessKey, CA: r.Value.CA, Secret: r.Value.Secret,
	})
	if err != nil {
		return admin.Repository{}, admin.NewError(admin.CodeRepositoryKey, "The home cannot open the secret of the repository "+in.Name+", either.",
			"remove the repository, and add it with --adopt, with its key and its secret")
	}
	var m store.Marker
	bare := r.Value
	bare.Key = nil
	err = within(ctx, func() error {
		opened, err := s.open(bare)
		if err == nil {
			m, err = store.ReadMarker(ctx, opened)
		}
		return err
	})
	if err != nil {
		return admin.Repository{}, refused(r.Value, err)
	}
	if !repository.Proved(key.Key, m.ID, m.Proof) {
		return admin.Repository{}, refused(r.Value, errWrongKey)
	}
	next := sealer.Seal(r.Value, key.Key, secret)
	next.Exported = c.Now.UTC() // somebody has it
	if err := s.Commit(ctx, state.Swap(r.Key, r.Revision, next)); err != nil {
		return admin.Repository{}, err
	}
	s.Log.Info("key of a repository imported", "name", in.Name, "by", c.Who.Key)
	return s.shown(next), nil
}

func cmpError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}
