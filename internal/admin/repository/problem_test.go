package repository

import (
	"strings"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/model/backup"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
)

// TestLittleRoomIsAProblem says why no automated backup begins, of repositories that there still are.
func TestLittleRoomIsAProblem(t *testing.T) {
	store := etcdtest.Store(t)
	cache := etcdtest.Cache(t, store, func(*state.Cache) {})
	etcdtest.Put(t, store, cache, state.Put(state.Repository("main"), backup.Repository{Name: "main"}))
	nothing := func() map[string]string { return nil }
	low := func() map[string]string {
		return map[string]string{"main": "10 MiB are free on its disk", "gone": "it is not there any more"}
	}
	found := Problems(cache, false, func() string { return "" }, nothing, low)
	if len(found) != 1 || found[0].Code != admin.ProblemLowRoom || found[0].Subject != "repository main" || found[0].Command != "howdah repository show main" ||
		!strings.HasPrefix(found[0].Text, "10 MiB are free on its disk: no automated backup begins") {
		t.Errorf("%+v", found)
	}
	if found := Problems(cache, false, func() string { return "" }, nothing, nothing); len(found) != 0 {
		t.Errorf("with room: %+v", found)
	}
}
