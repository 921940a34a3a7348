package repository

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
	"howdah/internal/identity/repository"
	"howdah/internal/model/backup"
	"howdah/internal/repository/place"
	"howdah/internal/repository/store"
	"howdah/internal/state"
)

// A name fits into keys of the state, into paths and into URLs.
var nameForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

// bucketForm is what S3 servers take, and a bit more.
var bucketForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$`)

func validName(name string) bool { return nameForm.MatchString(name) }

// add makes a repository of a place. It first does there everything that a repository needs, and
// asks every host to do the same.
func (s *service) add(ctx context.Context, c front.Call, in admin.RepositoryAddRequest) (admin.Repository, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.Repository{}, err
	}
	r, err := s.wanted(in)
	if err != nil {
		return admin.Repository{}, err
	}
	r.Created = c.Now.UTC()
	if err := s.free(r); err != nil {
		return admin.Repository{}, err
	}
	if in.Unencrypted && in.Default { // before anything is written there
		if err := s.hides(r); err != nil {
			return admin.Repository{}, err
		}
	}
	sealer, err := s.sealer()
	if err != nil {
		return admin.Repository{}, err
	}
	key, err := givenKey(in)
	if err != nil {
		return admin.Repository{}, err
	}
	bare := sealer.Seal(r, nil, in.Secret)
	opened, err := s.open(bare) // without an id: it may not be marked yet
	if err != nil {
		return admin.Repository{}, refused(r, err)
	}
	var marker store.Marker
	err = within(ctx, func() (err error) {
		marker, err = s.fits(ctx, opened, in, r, key)
		return err
	})
	if err != nil {
		return admin.Repository{}, refused(r, err)
	}
	looks, err := s.looks(ctx, bare)
	if err == nil {
		err = failedLooks(r, looks)
	}
	if err != nil {
		return admin.Repository{}, err
	}
	r.ID = marker.ID
	r = sealer.Seal(r, key.Key, in.Secret)
	if in.DryRun {
		return s.shown(r), nil
	}
	if err := within(ctx, func() error { return place.Found(ctx, opened, marker, s.knows) }); err != nil {
		return admin.Repository{}, refused(r, err)
	}
	if err := s.record(ctx, r); err != nil {
		return admin.Repository{}, err
	}
	s.Log.Info("repository added", "name", r.Name, "id", r.ID, "by", c.Who.Key)
	return s.shown(r), nil
}

// wanted returns the repository that somebody asks for, without id, key and secret.
func (s *service) wanted(in admin.RepositoryAddRequest) (backup.Repository, error) {
	r := backup.Repository{
		Name: in.Name, Kind: backup.Directory, Path: in.Path, Endpoint: strings.TrimSuffix(in.Endpoint, "/"), Region: in.Region, Bucket: in.Bucket,
		Prefix: strings.Trim(in.Prefix, "/"), CA: in.CA, AccessKey: in.AccessKey, Default: in.Default, Copies: in.Copies,
	}
	if r.Prefix != "" {
		r.Prefix += "/"
	}
	bad := func(text, hint string) (backup.Repository, error) {
		return backup.Repository{}, admin.NewError(admin.CodeInvalidRequest, text, hint)
	}
	switch {
	case !validName(in.Name):
		return bad(fmt.Sprintf("%.64q cannot be the name of a repository.", in.Name), "a name begins with a small letter, and has up to 31 small letters, digits and hyphens")
	case (in.Path == "") == (in.Endpoint == ""):
		return bad("A repository is in a directory or in a bucket of an S3 server: exactly one of the two.", "give --directory, or --s3 and --bucket")
	case in.Path != "" && in.Bucket+in.Prefix+in.CA+in.AccessKey+in.Secret+in.Region != "":
		return bad("A directory has no bucket, prefix, region, authority and access key.", "")
	case in.Unencrypted && in.KeySecret != "":
		return bad("What is not encrypted has no key.", "leave --unencrypted or the key away")
	case in.Path != "":
		if err := place.CheckPath(in.Path, s.taken(in)...); err != nil {
			return backup.Repository{}, refused(r, err)
		}
		return r, nil
	}
	r.Kind = backup.S3
	u, err := url.Parse(r.Endpoint)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "":
		return bad(fmt.Sprintf("%.200q is no URL of an S3 server.", in.Endpoint), "give it as https://HOST:PORT, without a path, and the bucket with --bucket")
	case !bucketForm.MatchString(in.Bucket):
		return bad(fmt.Sprintf("%.64q is no name of a bucket.", in.Bucket), "")
	case r.Prefix != "" && store.CheckKey(strings.TrimSuffix(r.Prefix, "/")) != nil:
		return bad(fmt.Sprintf("%.64q is no prefix of objects.", in.Prefix), "")
	case in.AccessKey == "" || in.Secret == "":
		return bad("An S3 server needs an access key and its secret.", "give --access-key, and the secret by --secret-file, HOWDAH_REPOSITORY_SECRET or --secret-stdin")
	case in.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(in.CA)):
		return bad("The authority of the S3 server is no certificate in PEM form.", "")
	}
	return r, nil
}

// taken returns the directories in which the home has something else. The default repository's own
// directory is in the home, and may be adopted.
func (s *service) taken(in admin.RepositoryAddRequest) []string {
	if in.Path == s.Home.RepositoryDir() && in.Adopt {
		return []string{s.Home.DataRoot, s.Home.RunDir()}
	}
	all := []string{s.Home.Dir, s.Home.DataRoot, s.Home.RunDir()}
	for _, dir := range all {
		if target, err := filepath.EvalSymlinks(dir); err == nil && target != dir {
			all = append(all, target)
		}
	}
	return all
}

// free refuses a name or a place that another repository has.
func (s *service) free(r backup.Repository) error {
	for _, other := range state.LoadAll[backup.Repository](s.Cache, state.RepositoryRoot) {
		o := other.Value
		switch {
		case o.Name == r.Name:
			return admin.NewError(admin.CodeRepositoryExists, "There is a repository "+r.Name+" already.", "see `howdah repository show "+r.Name+"`")
		case r.Path != "" && o.Path != "" && !place.Apart(r.Path, o.Path),
			r.Endpoint != "" && r.Endpoint == o.Endpoint && r.Bucket == o.Bucket && (strings.HasPrefix(r.Prefix, o.Prefix) || strings.HasPrefix(o.Prefix, r.Prefix)):
			return admin.NewError(admin.CodeRepositoryRefused, "The repository "+o.Name+" is at this place, in it or around it.", "choose a place of its own")
		}
	}
	return nil
}

// givenKey returns the key that the repository is to have. It is a new one if nobody gave one. One
// that is adopted may have none.
func givenKey(in admin.RepositoryAddRequest) (repository.Exported, error) {
	switch {
	case in.KeySecret != "":
		key, err := repository.Parse(in.KeySecret)
		if err != nil {
			return key, admin.NewError(admin.CodeRepositoryKey, "The key cannot be read: "+err.Error()+".", "give the whole text that `howdah repository key export` printed")
		}
		return key, nil
	case in.Unencrypted || in.Adopt:
		return repository.Exported{}, nil
	}
	return repository.Exported{Key: repository.NewKey()}, nil
}

// fits looks whether a place can be the repository, and returns the marker that is there, or that
// it is to have. It writes nothing.
func (s *service) fits(ctx context.Context, opened store.Store, in admin.RepositoryAddRequest, r backup.Repository, key repository.Exported) (store.Marker, error) {
	m, err := store.ReadMarker(ctx, opened)
	marked := err == nil
	if err != nil && !errors.Is(err, store.ErrNoMarker) {
		return m, err
	}
	switch {
	case in.Adopt && !marked:
		return m, errNothingToAdopt
	case in.Adopt && s.knows(m.ID):
		return m, place.ErrTaken
	case in.Adopt && m.Proof != "" && len(key.Key) == 0:
		return m, errKeyNeeded
	case in.Adopt && !repository.Proved(key.Key, m.ID, m.Proof):
		return m, errWrongKey
	case !in.Adopt:
		beside, err := place.Beside(ctx, opened)
		if err != nil {
			return m, err
		}
		if marked && (m.Home != s.Home.ID || s.knows(m.ID) || beside != "") {
			return m, fmt.Errorf("%w: its id is %s, of the home %s", place.ErrTaken, m.ID, m.Home)
		}
		if beside != "" {
			return m, fmt.Errorf("%w: %.80q", place.ErrNotEmpty, beside)
		}
		id := repository.NewID()
		m = store.Marker{ID: id, Home: s.Home.ID, Created: r.Created, Proof: repository.Proof(key.Key, id)}
	}
	return m, nil
}

var (
	errNothingToAdopt = errors.New("there is no repository to adopt")
	errKeyNeeded      = errors.New("what is there is encrypted, and its key is needed")
	errWrongKey       = errors.New("this key does not open it: it is the key of another repository, or nothing in it is encrypted")
)

// knows reports whether a repository with an id is recorded.
func (s *service) knows(id string) bool {
	for _, r := range state.LoadAll[backup.Repository](s.Cache, state.RepositoryRoot) {
		if r.Value.ID == id {
			return true
		}
	}
	return false
}

// record writes the record. The first repository is the default one, and a new default one takes
// the place of the old one.
func (s *service) record(ctx context.Context, r backup.Repository) error {
	return s.Retry(ctx, func() error {
		if err := s.free(r); err != nil {
			return err
		}
		all := state.LoadAll[backup.Repository](s.Cache, state.RepositoryRoot)
		if r.Default = r.Default || len(all) == 0; r.Default {
			if err := s.hides(r); err != nil {
				return err
			}
		}
		return s.Commit(ctx, append(changed(all, r), state.Swap(state.Repository(r.Name), 0, r))...)
	})
}

// changed returns what makes others lose what only one of all can be, if r is it.
func changed(all []state.Record[backup.Repository], r backup.Repository) []state.Op {
	var ops []state.Op
	for _, o := range all {
		if o.Value.Name == r.Name || !(r.Default && o.Value.Default || r.Copies && o.Value.Copies) {
			continue
		}
		o.Value.Default = o.Value.Default && !r.Default
		o.Value.Copies = o.Value.Copies && !r.Copies
		ops = append(ops, state.Swap(o.Key, o.Revision, o.Value))
	}
	return ops
}

// refused returns why a place was refused, with what to do.
func refused(r backup.Repository, err error) error {
	if _, ok := errors.AsType[*admin.Error](err); ok {
		return err
	}
	code, hint := admin.CodeRepositoryRefused, hintOf(r, err)
	switch {
	case errors.Is(err, place.ErrTaken):
		hint = "use another place; or give --adopt and, with --key-file, the key that `howdah repository key export` of its home prints"
	case errors.Is(err, place.ErrNotEmpty):
		hint = "use an empty directory, or an empty prefix of the bucket"
	case errors.Is(err, errNothingToAdopt):
		hint = "look whether its file system is mounted, or leave --adopt away"
	case errors.Is(err, errKeyNeeded), errors.Is(err, errWrongKey):
		code, hint = admin.CodeRepositoryKey, "give --key-file with the key of this very repository: `howdah repository key export` prints it in the home that made it"
	}
	where := r.Path
	if r.Kind == backup.S3 {
		where = r.Endpoint + "/" + r.Bucket + "/" + r.Prefix
	}
	return admin.NewError(code, "The repository "+r.Name+" at "+where+" cannot be used: "+err.Error()+".", hint)
}

// hintOf returns what to do about a store that does not work.
func hintOf(r backup.Repository, err error) string {
	directory := r.Kind == backup.Directory
	switch {
	case errors.Is(err, place.ErrPath):
		return ""
	case errors.Is(err, store.ErrFull):
		return "make room there"
	case errors.Is(err, store.ErrReadOnly) && directory, errors.Is(err, os.ErrPermission):
		return "let the user that Howdah runs as write there: chown it, and look whether the file system is mounted read-only"
	case errors.Is(err, store.ErrReadOnly):
		return "let the access key list, read, write and delete objects of the bucket"
	case errors.Is(err, store.ErrNoMarker), errors.Is(err, store.ErrOther):
		return "mount the file system that the repository is on"
	case errors.Is(err, store.ErrAway) && directory:
		return "mount the file system that the repository is on, at " + r.Path
	case errors.Is(err, store.ErrAway):
		return "look whether the server runs, whether its certificate is of the authority that was given, and whether the access key is right"
	}
	return ""
}
