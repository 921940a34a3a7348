package etcdgate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// These are the requests of Patroni 4.1 to etcd's JSON gateway (its dcs/etcd3.py), and no others. A
// request is taken apart into these and put together again. So etcd reads what was checked, and no
// second field beside it of the same name, or in another spelling.

// number is an integer. If etcd gave it as a text, Patroni writes it as a text.
type number string

func (n *number) UnmarshalJSON(text []byte) error {
	s := strings.Trim(string(text), `"`)
	for _, c := range s {
		if (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("%w: number %s", errForm, text)
		}
	}
	*n = number(s)
	return nil
}

type keys struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end,omitempty"`
}

type rangeRequest struct {
	keys
	Serializable bool `json:"serializable,omitempty"`
}

type putRequest struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
	Lease number `json:"lease,omitempty"`
}

type compare struct {
	Key            []byte `json:"key"`
	Target         string `json:"target"`
	Result         string `json:"result,omitempty"`
	CreateRevision number `json:"create_revision,omitempty"`
	ModRevision    number `json:"mod_revision,omitempty"`
	Value          []byte `json:"value,omitempty"`
}

type operation struct {
	Put    *putRequest   `json:"request_put,omitempty"`
	Delete *keys         `json:"request_delete_range,omitempty"`
	Range  *rangeRequest `json:"request_range,omitempty"`
	Txn    *txnRequest   `json:"request_txn,omitempty"`
}

type txnRequest struct {
	Compare []compare   `json:"compare"`
	Success []operation `json:"success"`
	Failure []operation `json:"failure,omitempty"`
}

type watchRequest struct {
	Create *struct {
		keys
		StartRevision number   `json:"start_revision,omitempty"`
		Filters       []string `json:"filters,omitempty"`
	} `json:"create_request"`
}

func (q watchRequest) needs() ([]need, error) {
	if q.Create == nil {
		return nil, errForm
	}
	return []need{{keys: q.Create.keys}}, nil
}

type grantRequest struct {
	TTL number `json:"TTL"`
	// ID is for us to choose: see leaseFor.
	ID number `json:"ID,omitempty"`
}

type keepAliveRequest struct {
	ID number `json:"ID"`
}

type listRequest struct{}

var (
	errForm  = errors.New("Patroni makes no such request")
	errScope = errors.New("the key is not the member's")
)

// decode takes a request apart, strictly.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errForm, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more follows", errForm)
	}
	return nil
}

// need is what a request does to keys, under a lease or without one.
type need struct {
	keys
	deed  deed
	lease number
	names bool // it reads no values
	fresh bool // it writes a key that is not there yet
	// compares says that it is a condition, which is no part of the answer.
	compares bool
	// value is what it writes, unless it leaves the value as it is.
	value        []byte
	ignoresValue bool
}

type deed int

const (
	reads deed = iota
	writes
	deletes
	keeps // a lease alive under which the key is
)

// String names the deed in the log.
func (d deed) String() string { return [...]string{"read", "write", "delete", "keep"}[d] }

// mostDepth bounds transactions within transactions. Patroni puts one into another.
const mostDepth = 2

// needs returns the needs of a transaction.
func (t txnRequest) needs(depth int) (all []need, err error) {
	if depth > mostDepth {
		return nil, fmt.Errorf("%w: transactions within others", errForm)
	}
	for _, c := range t.Compare {
		all = append(all, need{keys: keys{Key: c.Key}, compares: true})
	}
	for _, o := range append(append([]operation{}, t.Success...), t.Failure...) {
		more, err := o.needs(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func (o operation) needs(depth int) (all []need, err error) {
	kinds := 0
	if o.Put != nil {
		kinds, all = kinds+1, append(all, o.Put.need())
	}
	if o.Delete != nil {
		kinds, all = kinds+1, append(all, need{keys: *o.Delete, deed: deletes})
	}
	if o.Range != nil {
		kinds, all = kinds+1, append(all, need{keys: o.Range.keys})
	}
	if o.Txn != nil {
		kinds++
		if all, err = o.Txn.needs(depth + 1); err != nil {
			return nil, err
		}
	}
	if kinds != 1 {
		return nil, fmt.Errorf("%w: an operation of no kind, or of two", errForm)
	}
	return all, nil
}

func (q putRequest) need() need {
	return need{keys: keys{Key: q.Key}, deed: writes, lease: q.Lease, value: q.Value}
}
