// Package verb is how the verbs of the admin API register: each domain has a table of its own
// beside its handlers, and package server puts the tables together. It knows no verb by name.
package verb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"howdah/internal/admin"
	"howdah/internal/aws/front"
)

// Permission says whose keys may use a verb at all. Their policies are asked besides. A key of the
// home's own file may use every verb.
type Permission int

const (
	// OfHome: keys of the home's account. The verb shows or changes the whole home.
	OfHome Permission = iota
	// OfAccount: keys of any account. The verb looks at databases of the caller's account only.
	OfAccount
	// OfKeys: as OfHome, and keys without limits only. The verb could make a key without limits.
	OfKeys
)

// Verb is one verb: see On.
type Verb struct {
	Permission Permission
	// Timeout bounds a call; 0: front.Timeout.
	Timeout time.Duration

	do func(ctx context.Context, c front.Call, body []byte) (any, error)
}

// Table are verbs by the names that package admin gives them.
type Table map[string]Verb

// On makes a verb of a handler with typed input and output.
func On[In, Out any](permission Permission, handler func(context.Context, front.Call, In) (Out, error)) Verb {
	return Verb{Permission: permission, do: func(ctx context.Context, c front.Call, body []byte) (any, error) {
		var in In
		decoder := json.NewDecoder(bytes.NewReader(body))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
			return nil, admin.NewError(admin.CodeInvalidRequest, "The body cannot be read: "+err.Error()+".", "")
		}
		if decoder.More() {
			return nil, admin.NewError(admin.CodeInvalidRequest, "The body holds more than one JSON value.", "")
		}
		return handler(ctx, c, in)
	}}
}

// Within is the verb with another timeout.
func (v Verb) Within(timeout time.Duration) Verb {
	v.Timeout = timeout
	return v
}

// Do decodes a body, does the verb, and answers its output. It asks for no permission.
func (v Verb) Do(ctx context.Context, c front.Call, body []byte) (any, error) {
	timeout := v.Timeout
	if timeout == 0 {
		timeout = front.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return v.do(ctx, c, body)
}

// Action is the action that a verb counts as in policies, without the service: "drain" is Drain,
// "forget-host" ForgetHost.
func Action(name string) string {
	var action strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word != "" {
			action.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return action.String()
}

// May refuses a verb that the caller may not use. account is that of the home.
func (v Verb) May(c front.Call, account string) error {
	if !c.Who.OfHome && c.Account != account && v.Permission != OfAccount {
		return c.Denied("*", "because the account "+c.Account+" is not that of the home")
	}
	if len(c.Who.Policies) > 0 && v.Permission == OfKeys {
		return c.Denied("*", "because a limited access key could make one without its limits")
	}
	return c.May("*", c.Context(nil), true)
}
