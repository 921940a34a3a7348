package server

import (
	"encoding/json"
	"testing"

	"howdah/internal/admin/verb"
	"howdah/internal/aws/front"
)

// verb is one of the admin API, on the state of this world.
func (w *world) verb(name string) verb.Verb {
	w.Helper()
	known, ok := w.server.Admin().Verb(name)
	if !ok {
		w.Fatalf("there is no verb %s", name)
	}
	return known
}

// ask does a verb of the admin API, whoever may.
func ask[Out any](t *testing.T, w *world, c front.Call, name string, in any) (Out, error) {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.verb(name).Do(t.Context(), c, body)
	if err != nil {
		var none Out
		return none, err
	}
	return out.(Out), nil
}
