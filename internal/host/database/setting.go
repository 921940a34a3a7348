package database

import (
	"context"
	"errors"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/hostapi"
)

// checkSetting has PostgreSQL of this host judge a value, for control planes that have
// none of that version beside them.
func (a *Host) checkSetting(ctx context.Context, in hostapi.SettingRequest) (why string, err error) {
	install, err := postgres.Find(in.Major)
	if err != nil {
		return "", err
	}
	err = postgres.CheckSetting(ctx, install, in.Name, in.Value)
	if errors.Is(err, postgres.ErrSetting) {
		return err.Error(), nil
	}
	return "", err
}
