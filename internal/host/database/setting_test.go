package database

import (
	"errors"
	"strings"
	"testing"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/hostapi"
	"howdah/internal/testkit/pgversion"
)

func TestCheckSetting(t *testing.T) {
	t.Parallel()
	a := &Host{}
	for value, good := range map[string]bool{"Europe/Berlin": true, "Nowhere": false, "": false, "it's": false} {
		why, err := a.checkSetting(t.Context(), hostapi.SettingRequest{Major: pgversion.Major(), Name: "TimeZone", Value: value})
		if err != nil || (why == "") != good || !good && !strings.Contains(why, "TimeZone") {
			t.Errorf("%q: %q, %v", value, why, err)
		}
	}
	if _, err := a.checkSetting(t.Context(), hostapi.SettingRequest{Major: 14, Name: "TimeZone", Value: "UTC"}); !errors.Is(err, postgres.ErrNoVersion) {
		t.Error(err)
	}
}
