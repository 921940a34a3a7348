package front

import (
	"errors"
	"fmt"
	"net/http"
	"sync"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/access"
	"howdah/internal/identity/home"
	"howdah/internal/identity/iam"
	"howdah/internal/identity/stranger"
	"howdah/internal/state"
)

// Principal is who makes a call.
type Principal struct {
	Key     string // access key
	Account string
	ID      string // as GetCallerIdentity's UserId
	Name    string // of the user
	ARN     string
	// OfHome says that the key is in the home's own file. It may do everything, in its account and
	// to the home.
	OfHome bool
	// Policies must all allow. Without any, everything in the account is allowed.
	Policies []*iam.Policy
}

// OfHome returns the principal that has a key of the home's own file.
func OfHome(c home.Credential) Principal {
	return Principal{Key: c.AccessKey, Account: c.Account, ID: c.Account, Name: "root", ARN: "arn:aws:iam::" + c.Account + ":root", OfHome: true}
}

// keyring finds access keys in the home's file and in the state. It keeps what it opened from a
// record of the state as long as the record does not change.
type keyring struct {
	home   *home.Home
	cache  *state.Cache
	opened sync.Map // access key to opened
}

// opened is a key of the state, ready to be used.
type opened struct {
	revision int64
	secret   string
	who      Principal
}

// find returns the secret and the holder of an access key. It looks at file and state for each
// call, so that a key that was added or deleted counts at once.
func (k *keyring) find(id string) (string, Principal, bool, error) {
	all, err := k.home.Credentials()
	if err != nil {
		return "", Principal{}, false, err
	}
	for _, c := range all {
		if c.AccessKey == id {
			return c.Secret, OfHome(c), true, nil
		}
	}
	record, err := state.Load[access.Key](k.cache, state.Key(id))
	if err != nil {
		k.opened.Delete(id)
		return "", Principal{}, false, nil //nolint:nilerr // there is no such key
	}
	if known, ok := k.opened.Load(id); ok && known.(opened).revision == record.Revision {
		return known.(opened).secret, known.(opened).who, true, nil
	}
	o, err := k.open(record)
	if err != nil {
		return "", Principal{}, false, err
	}
	k.opened.Store(id, o)
	return o.secret, o.who, true, nil
}

func (k *keyring) open(record state.Record[access.Key]) (opened, error) {
	key := record.Value
	sealer, err := Sealer(k.home)
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
	return opened{record.Revision, secret, Principal{
		Key: key.ID, Account: key.Account, ID: key.ID, Name: key.Name, ARN: key.ARN(), Policies: policies,
	}}, nil
}

// Sealer returns what opens the secrets of access keys in the state, and seals those of new ones.
func Sealer(h *home.Home) (*access.Sealer, error) {
	key, err := h.SealKey()
	if err != nil {
		return nil, err
	}
	return access.NewSealer(key)
}

// Authenticate finds out who calls, and writes that into the record of the call. body is what Body
// has read.
func (f *Front) Authenticate(r *http.Request, body []byte, record *Record) (sigv4.Identity, Principal, error) {
	var who Principal
	var failed error
	identity, err := sigv4.Verify(r, body, func(id string) (string, bool) {
		record.claims(id)
		secret, holder, ok, err := f.keys.find(id)
		who, failed = holder, err
		return secret, ok
	}, f.Now())
	if failed != nil {
		return identity, Principal{}, failed
	}
	if err != nil {
		return identity, Principal{}, err
	}
	record.is(who, identity.Region)
	stranger.Known(r.Context())
	return identity, who, nil
}

// unsignedBody bounds the body of a request without a signature, in bytes. Such a body holds a
// token and the ARN of a topic.
const unsignedBody = 8 << 10

// Body reads the body of a request once everything was found right that can be checked without the
// body: the request was signed not long ago, with a key that exists.
func (f *Front) Body(r *http.Request, record *Record) ([]byte, error) {
	if !sigv4.Signed(r) {
		if r.ContentLength > unsignedBody {
			_, err := sigv4.Check(r, f.Now())
			return nil, err
		}
		return readBody(r, unsignedBody)
	}
	key, err := sigv4.Check(r, f.Now())
	if err != nil {
		return nil, err
	}
	record.claims(key)
	if _, _, ok, err := f.keys.find(key); err != nil {
		return nil, err
	} else if !ok {
		return nil, sigv4.NoSuchKey()
	}
	return readBody(r, wire.MaxBody)
}

// readBody blames the sender for what went wrong on the way, because that is no error of ours.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	body, err := wire.ReadBody(r, limit)
	if _, known := errors.AsType[*wire.Error](err); err == nil || known || errors.Is(err, stranger.ErrFull) {
		return body, err
	}
	return nil, wire.NewError(api.ErrRequestExpired, "The body of the request did not come whole, or not in time.")
}
