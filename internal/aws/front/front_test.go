package front

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/api"
	"howdah/api/sts"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/sigv4"
	"howdah/internal/identity/home"
)

type play struct{ Game string }

// newToys returns a front of two services, one for each protocol.
func newToys(t *testing.T) *Front {
	t.Helper()
	key, err := home.ParseCredential("KEY:secret:123456789012")
	if err != nil {
		t.Fatal(err)
	}
	h, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{Listen: "127.0.0.1:0", Credential: &key})
	if err != nil {
		t.Fatal(err)
	}
	query := &Service{
		Name: "sts", Contract: &sts.Service,
		Actions: map[string]Action{
			"GetCallerIdentity": On(func(_ context.Context, c Call, _ *sts.GetCallerIdentityRequest) (*sts.GetCallerIdentityResponse, error) {
				return &sts.GetCallerIdentityResponse{Arn: wire.Some(c.Who.ARN)}, nil
			}),
			"GetSessionToken": On(func(context.Context, Call, *sts.GetCallerIdentityRequest) (*sts.GetCallerIdentityResponse, error) {
				panic("a toy broke")
			}),
		},
		Refused: func(action string) error {
			if action == "Juggle" {
				return wire.NewError(api.ErrInvalidAction, "nobody here can")
			}
			return nil
		},
	}
	toy := &Service{
		Name: "toy", Target: "ToyBox",
		Actions: map[string]Action{"Play": OnJSON(
			func(_ context.Context, c Call, in *play) error {
				if in.Game == "chess" {
					return c.Denied(in.Game, "because it is late")
				}
				return nil
			},
			func(_ context.Context, _ Call, in *play) (any, error) {
				if in.Game == "" {
					return nil, wire.NewError("NoGame", "which?")
				}
				return play{in.Game + ", again"}, nil
			})},
		Refused: func(action string) error { return errors.New("no " + action) },
		Errors: func(known *wire.Error) *wire.Error {
			if known.Code == "NoGame" {
				return wire.NewError("NoGameException", "%s", known.Message)
			}
			return known
		},
	}
	return New(Config{Home: h, Log: slog.New(slog.DiscardHandler), Now: time.Now}, query, toy)
}

// TestServicesRegister checks that front answers for the services that it is given, each in its own
// language and words, and for no others.
func TestServicesRegister(t *testing.T) {
	f := newToys(t)
	for _, c := range []struct {
		service, target, body, want string
		status                      int
	}{
		{"sts", "", "Action=GetCallerIdentity", "<Arn>arn:aws:iam::123456789012:root</Arn>", 200},
		{"sts", "", "Action=GetSessionToken", "<Code>InternalFailure</Code>", 500},
		{"sts", "", "Action=Juggle", "nobody here can", 400},
		{"sts", "", "Action=Dance", "The action Dance is not valid for this web service.", 400},
		{"zoo", "", "Action=Feed", "The service zoo is not available here: Howdah speaks sts and toy.", 400},
		{"toy", "ToyBox.Play", `{"Game":"go"}`, `{"Game":"go, again"}`, 200},
		{"toy", "ToyBox.Play", `{"Game":"chess"}`, `"__type":"AccessDeniedException"`, 400},
		{"toy", "ToyBox.Play", ``, `"__type":"NoGameException"`, 400},
		{"toy", "ToyBox.Play", `[`, `"__type":"SerializationException"`, 400},
		{"toy", "ToyBox.Tidy", `{}`, `"__type":"InternalServiceError"`, 500},
		{"toy", "Zoo.Play", `{}`, `"__type":"UnknownOperationException"`, 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/", strings.NewReader(c.body))
		if c.target != "" {
			r.Header.Set("X-Amz-Target", c.target)
		}
		sigv4.Sign(r, []byte(c.body), sigv4.Credentials{AccessKeyID: "KEY", SecretAccessKey: "secret"}, "us-east-1", c.service, time.Now())
		answer := httptest.NewRecorder()
		f.ServeHTTP(answer, r)
		if answer.Code != c.status || !strings.Contains(answer.Body.String(), c.want) {
			t.Errorf("%s %s %s: answered %d %s", c.service, c.target, c.body, answer.Code, answer.Body)
		}
	}
}
