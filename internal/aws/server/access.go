package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/access"
	"howdah/internal/identity/home"
	"howdah/internal/identity/iam"
	"howdah/internal/identity/stranger"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

// principal is who makes a call.
type principal struct {
	key     string // access key
	account string
	id      string // as GetCallerIdentity's UserId
	name    string // of the user
	arn     string
	// ofHome: the key is in the home's own file. It may do everything, in its account
	// and to the home.
	ofHome bool
	// policies must all allow; none: everything in the account is allowed.
	policies []*iam.Policy
}

func ofHome(c home.Credential) principal {
	return principal{key: c.AccessKey, account: c.Account, id: c.Account, name: "root", arn: "arn:aws:iam::" + c.Account + ":root", ofHome: true}
}

// keyring finds access keys: in the home's file, and in the state. What a record
// of the state opens to is kept as long as the record does not change.
type keyring struct {
	home   *home.Home
	cache  *state.Cache
	opened sync.Map // access key to opened
}

// opened is a key of the state, ready to be used.
type opened struct {
	revision int64
	secret   string
	who      principal
}

// find answers the secret and the holder of an access key. Files and state are
// looked at for each call: a key that was added or deleted counts at once.
func (k *keyring) find(id string) (string, principal, bool, error) {
	all, err := k.home.Credentials()
	if err != nil {
		return "", principal{}, false, err
	}
	for _, c := range all {
		if c.AccessKey == id {
			return c.Secret, ofHome(c), true, nil
		}
	}
	record, err := state.Load[access.Key](k.cache, state.Key(id))
	if err != nil {
		k.opened.Delete(id)
		return "", principal{}, false, nil //nolint:nilerr // there is no such key
	}
	if known, ok := k.opened.Load(id); ok && known.(opened).revision == record.Revision {
		return known.(opened).secret, known.(opened).who, true, nil
	}
	o, err := k.open(record)
	if err != nil {
		return "", principal{}, false, err
	}
	k.opened.Store(id, o)
	return o.secret, o.who, true, nil
}

func (k *keyring) open(record state.Record[access.Key]) (opened, error) {
	key := record.Value
	sealer, err := k.sealer()
	if err != nil {
		return opened{}, err
	}
	secret, err := sealer.Open(key)
	if err != nil {
		return opened{}, err
	}
	policies, err := key.Policies()
	if err != nil {
		return opened{}, fmt.Errorf("policy of access key %s: %w", key.ID, err)
	}
	return opened{record.Revision, secret, principal{
		key: key.ID, account: key.Account, id: key.ID, name: key.Name, arn: key.ARN(), policies: policies,
	}}, nil
}

func (k *keyring) sealer() (*access.Sealer, error) {
	key, err := k.home.SealKey()
	if err != nil {
		return nil, err
	}
	return access.NewSealer(key)
}

// authenticate finds out who calls, and notes it in the record of the call.
func (s *Server) authenticate(r *http.Request, body []byte, record *record) (sigv4.Identity, principal, error) {
	var who principal
	var failed error
	identity, err := sigv4.Verify(r, body, func(id string) (string, bool) {
		record.claims(id)
		secret, holder, ok, err := s.keys.find(id)
		who, failed = holder, err
		return secret, ok
	}, s.now())
	if failed != nil {
		return identity, principal{}, failed
	}
	if err != nil {
		return identity, principal{}, err
	}
	record.is(who, identity.Region)
	stranger.Known(r.Context())
	return identity, who, nil
}

// unsignedBody bounds the body of a request without a signature: such a one holds a
// token and the ARN of a topic.
const unsignedBody = 8 << 10

// body reads the body of a request, once all that can be checked of it without its body
// was found to be right: it is signed by a key that there is, not long ago.
func (s *Server) body(r *http.Request, record *record) ([]byte, error) {
	if !sigv4.Signed(r) {
		if r.ContentLength > unsignedBody {
			_, err := sigv4.Check(r, s.now())
			return nil, err
		}
		return readBody(r, unsignedBody)
	}
	key, err := sigv4.Check(r, s.now())
	if err != nil {
		return nil, err
	}
	record.claims(key)
	if _, _, ok, err := s.keys.find(key); err != nil {
		return nil, err
	} else if !ok {
		return nil, sigv4.NoSuchKey()
	}
	return readBody(r, wire.MaxBody)
}

// readBody leaves what went wrong on the way to who sent it: it is no error of ours.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := wire.ReadBody(r, limit)
	if _, known := errors.AsType[*wire.Error](err); err == nil || known || errors.Is(err, stranger.ErrFull) {
		return body, err
	}
	return nil, wire.NewError(api.ErrRequestExpired, "The body of the request did not come whole, or not in time.")
}

// call is what handlers get to know of a request.
func (s *Server) call(r *http.Request, identity sigv4.Identity, who principal, action, id string) call {
	return call{
		Scope: spec.Scope{Account: who.account, Region: identity.Region}, who: who, action: identity.Service + ":" + action,
		source: sourceOf(r), secure: r.TLS != nil, id: id, now: s.now().UTC(),
	}
}

func sourceOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// about is what policies are asked about one resource. Names of RDS's resources mean
// the same in any case, those of topics do not. known is false where nobody could find
// out what the resource is like.
func (c call) about(resource string, context map[string][]string, known bool) iam.Request {
	return iam.Request{Action: c.action, Resource: resource, AnyCase: strings.HasPrefix(resource, "arn:aws:rds:"), Context: context, Blind: !known}
}

// may asks all policies of the caller about one resource.
func (c call) may(resource string, context map[string][]string, known bool) error {
	for _, p := range c.who.policies {
		decision := p.Decide(c.about(resource, context, known))
		switch decision {
		case iam.Allowed:
		case iam.Denied:
			return c.explicitlyDenied(resource)
		default:
			return c.denied(resource, "because no identity-based policy allows the "+c.action+" action")
		}
	}
	return nil
}

// spared refuses what a policy denies of one resource, where the action as such is
// allowed already.
func (s *Server) spared(c call, resource string) error {
	if len(c.who.policies) == 0 {
		return nil
	}
	context, known := s.look(c.Account).contextOf(c, resource, c.context(nil))
	for _, p := range c.who.policies {
		if p.Decide(c.about(resource, context, known)) == iam.Denied {
			return c.explicitlyDenied(resource)
		}
	}
	return nil
}

func (c call) explicitlyDenied(resource string) error {
	return c.denied(resource, "with an explicit deny in an identity-based policy")
}

func (c call) denied(resource, why string) error {
	return wire.NewError(api.ErrAccessDenied, "User: %s is not authorized to perform: %s on resource: %s %s", c.who.arn, c.action, resource, why)
}

// authorize refuses an action that the caller's policies do not allow, on any one
// of the resources that the request names. in is the decoded request.
func (s *Server) authorize(c call, in any) error {
	if len(c.who.policies) == 0 || c.action == "sts:GetCallerIdentity" {
		return nil // everyone may ask who they are, as on AWS
	}
	l := s.look(c.Account)
	asked := c.context(in)
	for _, resource := range s.namedBy(c, in) {
		context, known := l.contextOf(c, resource, asked)
		if err := c.may(resource, context, known); err != nil {
			return err
		}
	}
	return nil
}

// adminAction is the action that a verb counts as in policies: "drain" is
// howdah:Drain, "forget-host" howdah:ForgetHost.
func adminAction(verb string) string {
	var name strings.Builder
	for word := range strings.SplitSeq(verb, "-") {
		if word != "" {
			name.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return name.String()
}

// authorizeAdmin refuses a verb that the caller may not use. Verbs show and change
// the whole home, but for one that looks at databases of the caller's account: keys
// of other accounts than the home's may use only that.
func (s *Server) authorizeAdmin(c call) error {
	if !c.who.ofHome && c.Account != s.Home.Account && c.action != "howdah:Database" {
		return c.denied("*", "because the account "+c.Account+" is not that of the home")
	}
	if len(c.who.policies) > 0 && (c.action == "howdah:KeyCreate" || c.action == "howdah:KeyDelete") {
		return c.denied("*", "because a limited access key could make one without its limits")
	}
	return c.may("*", c.context(nil), true)
}
