package wire_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/api"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/shape"
)

// eachAction runs check for every action of every service.
func eachAction(t *testing.T, check func(t *testing.T, s *api.Service, a *api.Action)) {
	for _, s := range wire.Services() {
		for i := range s.Actions {
			t.Run(s.Name+"/"+s.Actions[i].Name, func(t *testing.T) { check(t, s, &s.Actions[i]) })
		}
	}
}

func TestInputRoundTrip(t *testing.T) {
	eachAction(t, func(t *testing.T, s *api.Service, a *api.Action) {
		want := filled(t, s, a.Input())
		got := a.Input()
		if err := wire.DecodeForm(wire.EncodeForm(a.Name, s.Version, want), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the input changed (-want +got):\n%s", diff)
		}
		if err := wire.Validate(got); err != nil {
			t.Errorf("an input within the limits: %v", err)
		}
	})
}

func TestOutputRoundTrip(t *testing.T) {
	eachAction(t, func(t *testing.T, s *api.Service, a *api.Action) {
		if a.Output == nil {
			body := encode(t, a.Name, nil)
			if err := wire.DecodeResult(body, a.Name, nil); err != nil {
				t.Errorf("void answer: %v", err)
			}
			return
		}
		want := filled(t, s, a.Output())
		got := a.Output()
		if err := wire.DecodeResult(encode(t, a.Name, want), a.Name, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the output changed (-want +got):\n%s", diff)
		}
	})
}

// An empty answer has its wrapper, or botocore raises KeyError.
func TestEmptyOutput(t *testing.T) {
	eachAction(t, func(t *testing.T, _ *api.Service, a *api.Action) {
		if a.Output == nil {
			return
		}
		got := a.Output()
		body := encode(t, a.Name, a.Output())
		if err := wire.DecodeResult(body, a.Name, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a.Output(), got); diff != "" {
			t.Errorf("an empty output gained members:\n%s", diff)
		}
		if a.Wrapper != "" && !bytes.Contains(body, []byte("<"+a.Wrapper+">")) {
			t.Errorf("no wrapper %s in %s", a.Wrapper, body)
		}
	})
}

// encode returns the answer, checked against the model.
func encode(t testing.TB, action string, out any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := wire.EncodeResult(&b, action, "11111111-2222-3333-4444-555555555555", out); err != nil {
		t.Fatal(err)
	}
	if err := shape.Check(action, b.Bytes()); err != nil {
		t.Fatalf("%v\n%s", err, b.Bytes())
	}
	return b.Bytes()
}
