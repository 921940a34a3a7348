package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
)

// service answers the SDK: it keeps the input that it decoded, and answers with
// an output or an error.
type service struct {
	t      testing.TB
	action *api.Action
	in     any
	out    any
	fail   *wire.Error
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.answer(w, r); err != nil {
		s.t.Errorf("serve: %v", err)
	}
}

func (s *service) answer(w http.ResponseWriter, r *http.Request) error {
	action, values, body, err := wire.ReadRequest(r, wire.MaxBody)
	if err != nil {
		return err
	}
	lookup := func(id string) (string, bool) { return "secret", id == "AKID" }
	if _, err := sigv4.Verify(r, body, lookup, time.Now()); err != nil {
		return err
	}
	if action != s.action.Name {
		return fmt.Errorf("asked for %s, not %s", action, s.action.Name)
	}
	s.in = s.action.Input()
	if err := wire.DecodeForm(values, s.in); err != nil {
		return err
	}
	w.Header().Set("Content-Type", wire.ContentType)
	if s.fail != nil {
		w.WriteHeader(s.fail.Status)
		return s.fail.Encode(w, rds.Service.XMLNS, "id")
	}
	return wire.EncodeResult(w, action, "id", s.out)
}

// client returns an SDK client that talks to the service.
func client(t testing.TB, s *service) *sdk.Client {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return sdk.New(sdk.Options{
		BaseEndpoint:     &server.URL,
		Region:           "us-east-1",
		RetryMaxAttempts: 1,
		HTTPClient:       wholeBody{http.Client{Timeout: 10 * time.Second}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}, nil
		}),
	})
}

// wholeBody sends a copy of the request's body. The SDK closes its own as soon as
// an answer begins, and a body larger than a buffer that net/http still looks at
// then breaks the connection (smithy-go 1.28.8: WriteTo behind Close is io.EOF).
type wholeBody struct{ http.Client }

func (c wholeBody) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return c.Client.Do(r)
}

// The SDK's own code writes every input and reads every output: nothing is lost
// on the way, in any of the actions.
func TestSDK(t *testing.T) {
	s := &service{t: t}
	methods := reflect.ValueOf(client(t, s))
	for i := range rds.Service.Actions {
		a := &rds.Service.Actions[i]
		t.Run(a.Name, func(t *testing.T) {
			s.t, s.action, s.out = t, a, nil
			if a.Output != nil {
				s.out = filled(t, &rds.Service, a.Output())
			}
			method := methods.MethodByName(a.Name)
			want := filled(t, &rds.Service, a.Input())
			in := reflect.New(method.Type().In(1).Elem())
			convert(t, in.Elem(), reflect.ValueOf(want).Elem())
			results := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), in})
			if err, _ := results[1].Interface().(error); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, s.in); diff != "" {
				t.Errorf("the input changed (-sent +decoded):\n%s", diff)
			}
			if a.Output == nil {
				return
			}
			got := a.Output()
			convert(t, reflect.ValueOf(got).Elem(), results[0].Elem())
			if diff := cmp.Diff(s.out, got); diff != "" {
				t.Errorf("the output changed (-encoded +read):\n%s", diff)
			}
		})
	}
}

// The SDK picks its exceptions by the codes of the model.
func TestSDKErrors(t *testing.T) {
	a, _ := rds.Service.Action("DeleteDBInstance")
	s := &service{t: t, action: a}
	call := func() error {
		_, err := client(t, s).DeleteDBInstance(t.Context(), &sdk.DeleteDBInstanceInput{DBInstanceIdentifier: new("a")})
		return err
	}
	s.fail = wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance a not found.").WithHint("list them")
	notFound, ok := errors.AsType[*types.DBInstanceNotFoundFault](call())
	if !ok || notFound.ErrorMessage() != "DBInstance a not found." {
		t.Errorf("got %v", notFound)
	}
	s.fail = wire.NewError(api.ErrInvalidParameterCombination, "FinalDBSnapshotIdentifier is required.")
	if e, ok := errors.AsType[smithy.APIError](call()); !ok || e.ErrorCode() != api.ErrInvalidParameterCombination {
		t.Errorf("got %v", e)
	}
}

// convert copies a structure into one of another package with the same fields.
// Fields that only the SDK has are left alone; a field of ours that it has not,
// or of a type that cannot hold ours, fails the test.
func convert(t testing.TB, to, from reflect.Value) {
	switch from.Kind() {
	case reflect.Struct:
		if to.Type() == from.Type() {
			to.Set(from)
			return
		}
		ours := to
		if from.Type().PkgPath() == reflect.TypeFor[rds.Tag]().PkgPath() {
			ours = from
		}
		for field := range ours.Type().Fields() {
			source, target := from.FieldByName(field.Name), to.FieldByName(field.Name)
			if !source.IsValid() || !target.IsValid() {
				t.Fatalf("%s and %s do not both have %s", to.Type(), from.Type(), field.Name)
			}
			convert(t, target, source)
		}
	case reflect.Pointer:
		convertPointer(t, to, from)
	case reflect.Slice:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			convert(t, to.Index(i), from.Index(i))
		}
	default:
		if to.Kind() == reflect.Pointer { // an enum, which the SDK keeps without a pointer
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		to.Set(from.Convert(to.Type()))
	}
}

func convertPointer(t testing.TB, to, from reflect.Value) {
	if from.IsNil() {
		return
	}
	if to.Kind() != reflect.Pointer {
		convert(t, to, from.Elem())
		return
	}
	to.Set(reflect.New(to.Type().Elem()))
	convert(t, to.Elem(), from.Elem())
}
