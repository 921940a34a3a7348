package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"howdah/api/rds"
	"howdah/internal/admin"
	"howdah/internal/aws/wire"
	"howdah/internal/host/hostapi"
)

// Error is an answer of the API that says no.
type Error struct {
	Code    string
	Message string
	Hint    string // what can be done about it, or ""
	Status  int    // of HTTP
}

func (e *Error) Error() string {
	text := e.Code + ": " + e.Message
	if e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	return text
}

// IsCode reports whether err is the API's error with this code.
func IsCode(err error, code string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// RDS calls an action with the input and output structures of package rds. out is nil for an action
// that returns nothing.
func (c *Client) RDS(ctx context.Context, action string, in, out any) error {
	a, err := c.send(ctx, request{
		name: action, path: "/", service: "rds", again: readsOnly(action),
		media: "application/x-www-form-urlencoded; charset=utf-8",
		body:  []byte(wire.EncodeForm(action, rds.Service.Version, in).Encode()),
	})
	if err != nil {
		return err
	}
	err = wire.DecodeResult(a.body, action, out)
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return &Error{Code: e.Code, Message: e.Message, Hint: e.Hint, Status: a.status}
	}
	if err != nil {
		return c.stranger(action, a, err)
	}
	return nil
}

func readsOnly(action string) bool {
	return strings.HasPrefix(action, "Describe") || strings.HasPrefix(action, "List") || strings.HasPrefix(action, "Download")
}

// repeatable has the verbs that change nothing more when they are called twice.
var repeatable = map[string]bool{
	admin.VerbStatus: true, admin.VerbDatabase: true, admin.VerbFailovers: true,
	admin.VerbDrain: true, admin.VerbUndrain: true, admin.VerbWipe: true,
	admin.VerbKeyList: true, admin.VerbAuthorityList: true,
	admin.VerbOperations: true, admin.VerbOperationCancel: true,
	admin.VerbBackups: true, admin.VerbBackupShow: true, admin.VerbDrills: true, admin.VerbSnapshots: true,
	admin.VerbBackupNow: true, admin.VerbBackupDrill: true, admin.VerbSnapshotDownload: true, // the caller chose the operation's id
	admin.VerbRepositoryList: true, admin.VerbRepositoryShow: true, admin.VerbRepositoryCheck: true, admin.VerbRepositoryDefault: true,
	admin.VerbRoleList: true,
}

// longVerbs has the timeouts of verbs that take long.
var longVerbs = map[string]time.Duration{
	admin.VerbWipe: 70 * time.Second, admin.VerbAuthorityCreate: 130 * time.Second, admin.VerbEtcd: 310 * time.Second,
	admin.VerbRepositoryAdd: 130 * time.Second, admin.VerbRepositoryShow: 35 * time.Second, admin.VerbRepositoryCheck: 130 * time.Second,
	admin.VerbRepositoryRemove: 610 * time.Second, admin.VerbRepositoryKeyImport: 35 * time.Second,
}

// Admin calls a verb with the structures of package admin.
func (c *Client) Admin(ctx context.Context, verb string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	a, err := c.send(ctx, request{
		name: verb, path: admin.Path + verb, service: admin.Service, media: "application/json",
		again: repeatable[verb], body: body, timeout: longVerbs[verb],
	})
	if err != nil {
		return err
	}
	if a.status == http.StatusOK {
		if err := json.Unmarshal(a.body, out); err != nil {
			return c.stranger(verb, a, err)
		}
		return nil
	}
	return c.refusal(verb, a)
}

// Fetch calls a verb whose answer is no JSON. Reading it ends with io.EOF only if all of it came whole.
// The caller closes it.
func (c *Client) Fetch(ctx context.Context, verb string, in any) (*hostapi.Summed, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	r := request{name: verb, path: admin.Path + verb, service: admin.Service, media: "application/json", body: body}
	ctx, cancel := context.WithCancel(ctx)
	begins := time.AfterFunc(callTimeout, cancel)
	got, err := c.do(ctx, r)
	if !begins.Stop() && err == nil {
		_ = got.Body.Close()
		err = context.DeadlineExceeded
	}
	if err != nil {
		cancel()
		return nil, c.explain(r, err)
	}
	if got.StatusCode == http.StatusOK {
		return hostapi.ReadSummed(got, cancel), nil
	}
	defer cancel()
	defer got.Body.Close()
	text, err := io.ReadAll(io.LimitReader(got.Body, maxAnswer))
	if err != nil {
		return nil, c.explain(r, err)
	}
	return nil, c.refusal(verb, answer{got.StatusCode, text})
}

// refusal is the error that an answer has.
func (c *Client) refusal(verb string, a answer) error {
	var e admin.Error
	if err := json.Unmarshal(a.body, &e); err != nil || e.Code == "" {
		return c.stranger(verb, a, err)
	}
	return &Error{Code: e.Code, Message: e.Message, Hint: e.Hint, Status: a.status}
}

// ErrStranger says that what answers at the endpoint does not speak this API.
var ErrStranger = errors.New("this is not a Howdah of this version")

func (c *Client) stranger(name string, a answer, err error) error {
	if err == nil {
		return fmt.Errorf("%s: %s (%s) answered %d: %w", name, c.Endpoint, c.Source, a.status, ErrStranger)
	}
	return fmt.Errorf("%s: %s (%s) answered %d: %w: %w", name, c.Endpoint, c.Source, a.status, ErrStranger, err)
}
