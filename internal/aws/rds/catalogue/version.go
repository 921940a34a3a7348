package catalogue

import (
	"context"
	"slices"
	"strconv"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/model/spec"
)

// describeDBEngineVersions lists the versions that a database can be made with.
func (s *service) describeDBEngineVersions(ctx context.Context, _ front.Call, in *rds.DescribeDBEngineVersionsMessage) (*rds.DBEngineVersionMessage, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	filters, err := look.ReadFilters(in.Filters, "db-parameter-group-family", "engine", "engine-mode", "engine-version", "status")
	if err != nil {
		return nil, err
	}
	all, err := s.looks.Offers(in.Engine)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(o look.Offer) bool {
		return !o.Is(in.EngineVersion) || wire.Or(in.DefaultOnly, false) && !o.Newest ||
			in.DBParameterGroupFamily != nil && *in.DBParameterGroupFamily != o.Family() ||
			!filters.Match(map[string][]string{
				"db-parameter-group-family": {o.Family()}, "engine": {o.Engine}, "engine-mode": {"provisioned"},
				"engine-version": {o.Version}, "status": {"available"},
			})
	})
	chosen, marker, err := page.Of(all, look.Offer.Key, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DBEngineVersionMessage{Marker: marker, DBEngineVersions: []rds.DBEngineVersion{}}
	authorities := s.authorities()
	for _, o := range chosen {
		v := versionOut(o, authorities)
		if wire.Or(in.ListSupportedCharacterSets, false) {
			v.SupportedCharacterSets = []rds.CharacterSet{*v.DefaultCharacterSet}
		}
		out.DBEngineVersions = append(out.DBEngineVersions, v)
	}
	return out, nil
}

func versionOut(o look.Offer, authorities []string) rds.DBEngineVersion {
	title := "PostgreSQL"
	if o.Engine == spec.Aurora {
		title = "Aurora PostgreSQL"
	}
	return rds.DBEngineVersion{
		Engine: wire.Some(o.Engine), EngineVersion: wire.Some(o.Version), MajorEngineVersion: wire.Some(strconv.Itoa(o.Major)),
		DBParameterGroupFamily: wire.Some(o.Family()), DBEngineDescription: wire.Some(title), DBEngineVersionDescription: wire.Some(title + " " + o.Version),
		DefaultCharacterSet: &rds.CharacterSet{CharacterSetName: wire.Some("UTF8"), CharacterSetDescription: wire.Some("Unicode 8-bit")},
		ValidUpgradeTarget:  []rds.UpgradeTarget{}, ExportableLogTypes: []string{"postgresql", "upgrade"},
		SupportsLogExportsToCloudwatchLogs: wire.Some(false), SupportsReadReplica: wire.Some(true), SupportedEngineModes: []string{"provisioned"},
		SupportedFeatureNames: []string{}, Status: wire.Some("available"), SupportsParallelQuery: wire.Some(false), SupportsGlobalDatabases: wire.Some(false),
		SupportsBabelfish: wire.Some(false), SupportsLimitlessDatabase: wire.Some(false), SupportsLocalWriteForwarding: wire.Some(false),
		SupportsIntegrations: wire.Some(false), SupportsCertificateRotationWithoutRestart: wire.Some(true),
		SupportedCACertificateIdentifiers: authorities, TagList: []rds.Tag{},
	}
}

// lifecycles are when the PostgreSQL project first released each major version and
// stops to mend it (postgresql.org, "Versioning Policy").
var lifecycles = map[int][2]time.Time{
	13: {day(2020, 9, 24), day(2025, 11, 13)}, 14: {day(2021, 9, 30), day(2026, 11, 12)}, 15: {day(2022, 10, 13), day(2027, 11, 11)},
	16: {day(2023, 9, 14), day(2028, 11, 9)}, 17: {day(2024, 9, 26), day(2029, 11, 8)}, 18: {day(2025, 9, 25), day(2030, 11, 14)},
}

func day(year int, month time.Month, d int) time.Time {
	return time.Date(year, month, d, 0, 0, 0, 0, time.UTC)
}

// describeDBMajorEngineVersions lists major versions with the time in which the
// PostgreSQL project mends them: nobody supports them longer here.
func (s *service) describeDBMajorEngineVersions(ctx context.Context, _ front.Call, in *rds.DescribeDBMajorEngineVersionsRequest) (*rds.DescribeDBMajorEngineVersionsResponse, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	all, err := s.looks.Offers(in.Engine)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(o look.Offer) bool {
		return in.MajorEngineVersion != nil && *in.MajorEngineVersion != strconv.Itoa(o.Major)
	})
	chosen, marker, err := page.Of(all, look.Offer.Key, in.MaxRecords, in.Marker)
	if err != nil {
		return nil, err
	}
	out := &rds.DescribeDBMajorEngineVersionsResponse{Marker: marker, DBMajorEngineVersions: []rds.DBMajorEngineVersion{}}
	for _, o := range chosen {
		v := rds.DBMajorEngineVersion{
			Engine: wire.Some(o.Engine), MajorEngineVersion: wire.Some(strconv.Itoa(o.Major)), SupportedEngineLifecycles: []rds.SupportedEngineLifecycle{},
		}
		if life, known := lifecycles[o.Major]; known {
			v.SupportedEngineLifecycles = append(v.SupportedEngineLifecycles, rds.SupportedEngineLifecycle{
				LifecycleSupportName:      wire.Some("open-source-rds-standard-support"),
				LifecycleSupportStartDate: wire.Some(life[0]), LifecycleSupportEndDate: wire.Some(life[1]),
			})
		}
		out.DBMajorEngineVersions = append(out.DBMajorEngineVersions, v)
	}
	return out, nil
}

// describeServerlessV2PlatformVersions lists none: capacity that scales by itself is
// not available, and CreateDBCluster says so too.
func (s *service) describeServerlessV2PlatformVersions(_ context.Context, _ front.Call, in *rds.DescribeServerlessV2PlatformVersionsMessage) (*rds.ServerlessV2PlatformVersionsMessage, error) {
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	if _, err := s.looks.Offers(in.Engine); err != nil {
		return nil, err
	}
	none, marker, err := page.Of([]rds.ServerlessV2PlatformVersionInfo{}, func(rds.ServerlessV2PlatformVersionInfo) string { return "" }, in.MaxRecords, in.Marker)
	return &rds.ServerlessV2PlatformVersionsMessage{ServerlessV2PlatformVersions: none, Marker: marker}, err
}
