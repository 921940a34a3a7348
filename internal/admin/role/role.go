// Package role has the admin API's verbs on roles that let databases export to buckets of S3 servers,
// and import from them.
//
// Invariants: no verb tells a secret. A role belongs to one account, and databases of others never get
// what it opens. Only an operator says where a server is: no user and no SQL does.
package role

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"howdah/internal/admin"
	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
	"howdah/internal/identity/bucket"
	"howdah/internal/identity/home"
	"howdah/internal/model/spec"
	"howdah/internal/repository/store"
	"howdah/internal/state"
)

// Config is what the verbs need. All fields are required.
type Config struct {
	State *state.Client
	Home  *home.Home
	Log   *slog.Logger
}

// service has the handlers.
type service struct {
	*state.Client
	home *home.Home
	log  *slog.Logger
}

// Verbs returns the verbs on roles. They are the operator's, as they decide which servers hosts talk
// to.
func Verbs(cfg Config) verb.Table {
	s := &service{cfg.State, cfg.Home, cfg.Log}
	return verb.Table{
		admin.VerbRoleAdd:    verb.On(verb.OfHome, s.add),
		admin.VerbRoleList:   verb.On(verb.OfHome, s.list),
		admin.VerbRoleRemove: verb.On(verb.OfHome, s.remove),
	}
}

var (
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
	// bucketForm is what S3 servers take, and a bit more.
	bucketForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$`)
)

// add makes a role, or replaces one.
func (s *service) add(ctx context.Context, c front.Call, in admin.RoleAddRequest) (admin.Role, error) {
	wanted, err := s.wanted(in)
	if err != nil {
		return admin.Role{}, err
	}
	wanted.Created = c.Now.UTC()
	key, err := s.home.SealKey()
	if err != nil {
		return admin.Role{}, err
	}
	sealer, err := bucket.NewSealer(key)
	if err != nil {
		return admin.Role{}, err
	}
	wanted = sealer.Seal(wanted, in.Secret)
	at := state.BucketRole(wanted.Account, wanted.Name)
	err = s.Retry(ctx, func() error {
		old, err := state.Load[spec.BucketRole](s.Cache, at)
		switch {
		case err == nil && !in.Replace:
			return admin.NewError(admin.CodeRoleExists, "There is a role "+wanted.Name+" already, in the account "+wanted.Account+".", "give --replace to give it another bucket or key")
		case errors.Is(err, state.ErrNotFound):
			old.Revision = 0
		case err != nil:
			return err
		}
		return s.Commit(ctx, state.Swap(at, old.Revision, wanted))
	})
	if err != nil {
		return admin.Role{}, err
	}
	s.log.Info("role added", "role", wanted.ARN(), "endpoint", wanted.Endpoint, "bucket", wanted.Bucket, "by", c.Who.Key)
	return s.shown(wanted), nil
}

// wanted returns the role that somebody asks for, without its secret.
func (s *service) wanted(in admin.RoleAddRequest) (spec.BucketRole, error) {
	r := spec.BucketRole{
		Account: cmp.Or(in.Account, s.home.Account), Name: in.Name, Endpoint: strings.TrimSuffix(in.Endpoint, "/"), Region: in.Region, Bucket: in.Bucket,
		Prefix: strings.TrimRight(in.Prefix, "/"), CA: in.CA, AccessKey: in.AccessKey,
	}
	if r.Prefix != "" {
		r.Prefix += "/"
	}
	bad := func(text, hint string) (spec.BucketRole, error) {
		return spec.BucketRole{}, admin.NewError(admin.CodeInvalidRequest, text, hint)
	}
	u, err := url.Parse(r.Endpoint)
	switch {
	case !accountForm.MatchString(r.Account):
		return bad(fmt.Sprintf("%.64q is no account.", in.Account), "an account has twelve digits")
	case !spec.CheckBucketRoleName(r.Name):
		return bad(fmt.Sprintf("%.64q cannot be the name of a role.", in.Name), "a name has up to 64 letters, digits and + = , . @ _ -")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.Path != "" || u.User != nil || u.RawQuery != "":
		return bad(fmt.Sprintf("%.200q is no URL of an S3 server.", in.Endpoint), "give it as https://HOST:PORT, without a path, and the bucket with --bucket")
	case !bucketForm.MatchString(r.Bucket):
		return bad(fmt.Sprintf("%.64q is no name of a bucket.", in.Bucket), "")
	case r.Prefix != "" && store.CheckKey(strings.TrimSuffix(r.Prefix, "/")) != nil:
		return bad(fmt.Sprintf("%.64q is no prefix of objects.", in.Prefix), "")
	case in.AccessKey == "" || in.Secret == "":
		return bad("An S3 server needs an access key and its secret.", "give --access-key, and the secret by --secret-file, HOWDAH_ROLE_SECRET or --secret-stdin")
	case in.CA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(in.CA)):
		return bad("The authority of the S3 server is no certificate in PEM form.", "")
	}
	return r, nil
}

func (s *service) list(ctx context.Context, _ front.Call, _ admin.Nothing) (admin.RoleListAnswer, error) {
	if err := s.Fresh(ctx); err != nil {
		return admin.RoleListAnswer{}, err
	}
	out := admin.RoleListAnswer{Roles: []admin.Role{}}
	for _, r := range state.LoadAll[spec.BucketRole](s.Cache, state.BucketRoleRoot) {
		out.Roles = append(out.Roles, s.shown(r.Value))
	}
	slices.SortFunc(out.Roles, func(a, b admin.Role) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// remove forgets a role that no database has.
func (s *service) remove(ctx context.Context, c front.Call, in admin.RoleRequest) (admin.Role, error) {
	account := cmp.Or(in.Account, s.home.Account)
	unknown := admin.NewError(admin.CodeRoleNotFound, fmt.Sprintf("There is no role %.64q in the account %.12q.", in.Name, account), "see `howdah role list`")
	if !accountForm.MatchString(account) || !spec.CheckBucketRoleName(in.Name) {
		return admin.Role{}, unknown
	}
	var out admin.Role
	err := s.Retry(ctx, func() error {
		r, err := state.Load[spec.BucketRole](s.Cache, state.BucketRole(account, in.Name))
		if errors.Is(err, state.ErrNotFound) {
			return unknown
		}
		if err != nil {
			return err
		}
		if out = s.shown(r.Value); len(out.Databases) > 0 {
			return admin.NewError(admin.CodeRoleInUse, fmt.Sprintf("The role %s is that of %s for %s, and of %d databases in all.", in.Name, out.Databases[0].Database, out.Databases[0].Feature, len(out.Databases)),
				"take it from them first, as with RemoveRoleFromDBInstance and RemoveRoleFromDBCluster")
		}
		return s.Commit(ctx, state.Remove(r.Key, r.Revision))
	})
	if err != nil {
		return admin.Role{}, err
	}
	s.log.Info("role removed", "role", out.ARN, "by", c.Who.Key)
	return out, nil
}

// shown returns what is shown of a role.
func (s *service) shown(r spec.BucketRole) admin.Role {
	out := admin.Role{
		ARN: r.ARN(), Account: r.Account, Name: r.Name, Endpoint: r.Endpoint, Region: r.Region, Bucket: r.Bucket, Prefix: r.Prefix,
		AccessKey: r.AccessKey, Created: r.Created, Databases: []admin.RoleUse{},
	}
	use := func(c spec.Common) {
		for _, has := range c.Roles {
			if c.Account == r.Account && has.ARN == r.ARN() {
				out.Databases = append(out.Databases, admin.RoleUse{Database: c.Name, Region: c.Region, Feature: has.Feature})
			}
		}
	}
	for _, i := range state.ViewAll[spec.Instance](s.Cache, state.InstanceRoot) {
		use(i.Value.Common)
	}
	for _, c := range state.ViewAll[spec.Cluster](s.Cache, state.ClusterRoot) {
		use(c.Value.Common)
	}
	slices.SortFunc(out.Databases, func(a, b admin.RoleUse) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Feature, b.Feature))
	})
	return out
}
