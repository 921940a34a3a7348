// Package verb is how the verbs of the admin API register. Each domain has a table of its own
// beside its handlers, and package server puts the tables together. This package knows no verb by
// name.
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

// Permission says whose keys may use a verb at all. Their policies are asked, too. A key of the
// home's own file may use every verb.
type Permission int

const (
	// OfHome is for keys of the home's account. The verb shows or changes the whole home.
	OfHome Permission = iota
	// OfAccount is for keys of any account. The verb looks only at databases of the caller's
	// account.
	OfAccount
	// OfKeys is like OfHome, but only for keys without limits. The verb could make a key without
	// limits.
	OfKeys
)

// Stream is an answer that is not JSON, but as hostapi.SendSummed sends it, however long that takes.
// Open is called when the verb is done, with a context that lasts.
type Stream struct {
	Open func(ctx context.Context) (body io.ReadCloser, size int64, err error)
}

// Verb is one verb: see On.
type Verb struct {
	Permission Permission
	// Timeout bounds a call. 0 is front.Timeout.
	Timeout time.Duration

	do func(ctx context.Context, c front.Call, body []byte) (any, error)
}

// Table has verbs by the names that package admin gives them.
type Table map[string]Verb

// On returns a verb of a handler with typed input and output.
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

// Within returns the verb with another timeout.
func (v Verb) Within(timeout time.Duration) Verb {
	v.Timeout = timeout
	return v
}

// Do decodes a body, does the verb, and returns its output. It checks no permission.
func (v Verb) Do(ctx context.Context, c front.Call, body []byte) (any, error) {
	timeout := v.Timeout
	if timeout == 0 {
		timeout = front.Timeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return v.do(ctx, c, body)
}

// Action returns the name of a verb in policies, without the service: "drain" is Drain,
// "forget-host" is ForgetHost.
func Action(name string) string {
	var action strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word != "" {
			action.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return action.String()
}

// May refuses a verb that the caller may not use. account is the home's account.
func (v Verb) May(c front.Call, account string) error {
	if !c.Who.OfHome && c.Account != account && v.Permission != OfAccount {
		return c.Denied("*", "because the account "+c.Account+" is not that of the home")
	}
	if len(c.Who.Policies) > 0 && v.Permission == OfKeys {
		return c.Denied("*", "because a limited access key could make one without its limits")
	}
	return c.May("*", c.Context(nil), true)
}
