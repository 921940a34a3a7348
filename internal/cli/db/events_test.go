package db

import (
	"testing"
	"time"

	"howdah/internal/admin/client"
	"howdah/internal/cli/clitest"
)

func TestFollowEventsTellsEachOnce(t *testing.T) {
	f := clitest.Start(t, clitest.Fixtures["two"])
	api, err := client.FromHome(f.Home)
	if err != nil {
		t.Fatal(err)
	}
	e := eventReader{api: api, from: clitest.Noon.Add(-2 * time.Hour)}
	first, err := e.read(t.Context())
	if err != nil || len(first) != 2 {
		t.Fatalf("%d events: %v", len(first), err)
	}
	again, err := e.read(t.Context())
	if err != nil || len(again) != 0 {
		t.Errorf("%d events are told again: %v", len(again), err)
	}
}
