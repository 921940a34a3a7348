package server

import (
	"cmp"
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

// catalogueActions are those on what there is to choose from.
func (s *Server) catalogueActions() map[string]front.Action {
	return map[string]front.Action{
		"DescribeAccountAttributes":            front.On(s.describeAccountAttributes),
		"DescribeDBEngineVersions":             front.On(s.describeDBEngineVersions),
		"DescribeDBMajorEngineVersions":        front.On(s.describeDBMajorEngineVersions),
		"DescribeOrderableDBInstanceOptions":   front.On(s.describeOrderableDBInstanceOptions),
		"DescribeServerlessV2PlatformVersions": front.On(s.describeServerlessV2PlatformVersions),
		"DescribeSourceRegions":                front.On(s.describeSourceRegions),
		"DescribeValidDBInstanceModifications": front.On(s.describeValidDBInstanceModifications),
	}
}

// describeDBEngineVersions lists the versions that a database can be made with.
func (s *Server) describeDBEngineVersions(ctx context.Context, _ front.Call, in *rds.DescribeDBEngineVersionsMessage) (*rds.DBEngineVersionMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
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
	authorities := s.authorities.Names()
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
func (s *Server) describeDBMajorEngineVersions(ctx context.Context, _ front.Call, in *rds.DescribeDBMajorEngineVersionsRequest) (*rds.DescribeDBMajorEngineVersionsResponse, error) {
	if err := s.client.Fresh(ctx); err != nil {
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

// option is a class with a version and a kind of storage.
type option struct {
	look.Offer
	class   string
	storage string
}

func (o option) key() string { return o.Offer.Key() + "/" + o.class + "/" + o.storage }

// storageOf are the kinds of storage of an engine's instances.
var storageOf = map[string][]string{spec.Aurora: {look.AuroraStorage.Type, look.AuroraIO}, spec.Postgres: {"gp2", "gp3", "io1", "io2", "standard"}}

// describeOrderableDBInstanceOptions lists what an instance can be made of: the
// versions that are installed, and the classes that some host has room for.
func (s *Server) describeOrderableDBInstanceOptions(ctx context.Context, c front.Call, in *rds.DescribeOrderableDBInstanceOptionsMessage) (*rds.OrderableDBInstanceOptionsMessage, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return nil, err
	}
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	offers, err := s.looks.Offers(in.Engine)
	if err != nil {
		return nil, err
	}
	if wire.Or(in.LicenseModel, look.License) != look.License || !wire.Or(in.Vpc, true) || wire.Or(in.AvailabilityZoneGroup, c.Region) != c.Region {
		offers = nil // nothing is like that
	}
	all := s.options(offers, in.EngineVersion, in.DBInstanceClass)
	chosen, marker, err := page.UpTo(all, option.key, in.MaxRecords, in.Marker, 1000)
	if err != nil {
		return nil, err
	}
	out := &rds.OrderableDBInstanceOptionsMessage{Marker: marker, OrderableDBInstanceOptions: []rds.OrderableDBInstanceOption{}}
	zones := []rds.AvailabilityZone{}
	for _, z := range s.looks.Zones() {
		zones = append(zones, rds.AvailabilityZone{Name: wire.Some(c.ZoneName(z))})
	}
	for _, o := range chosen {
		out.OrderableDBInstanceOptions = append(out.OrderableDBInstanceOptions, optionOut(o, c.Region, zones, s.canEncrypt() == nil))
	}
	return out, nil
}

func (s *Server) options(offers []look.Offer, version, class *string) []option {
	var all []option
	for _, o := range offers {
		if !o.Is(version) {
			continue
		}
		for _, known := range spec.Classes() {
			if class != nil && *class != known.Name || !s.hasRoom(known) {
				continue
			}
			for _, storage := range storageOf[o.Engine] {
				all = append(all, option{o, known.Name, storage})
			}
		}
	}
	slices.SortFunc(all, func(a, b option) int { return cmp.Compare(a.key(), b.key()) })
	return all
}

// hasRoom: some host is large enough for a class, or classes need not fit.
func (s *Server) hasRoom(class spec.Class) bool {
	if s.looks.Policy.Overcommit {
		return true
	}
	for _, h := range s.looks.Hosts() {
		if class.CPUs <= h.CPUs && class.Memory <= h.Memory {
			return true
		}
	}
	return false
}

func optionOut(o option, region string, zones []rds.AvailabilityZone, encrypts bool) rds.OrderableDBInstanceOption {
	aurora := o.Engine == spec.Aurora
	out := rds.OrderableDBInstanceOption{
		Engine: wire.Some(o.Engine), EngineVersion: wire.Some(o.Version), DBInstanceClass: wire.Some(o.class), LicenseModel: wire.Some(look.License),
		AvailabilityZoneGroup: wire.Some(region), AvailabilityZones: zones, MultiAZCapable: wire.Some(!aurora && len(zones) > 1), ReadReplicaCapable: wire.Some(true),
		Vpc: wire.Some(true), SupportsStorageEncryption: wire.Some(encrypts), StorageType: wire.Some(o.storage), SupportsIops: wire.Some(false),
		SupportsStorageThroughput: wire.Some(false), SupportsEnhancedMonitoring: wire.Some(false), SupportsIAMDatabaseAuthentication: wire.Some(true),
		SupportsPerformanceInsights: wire.Some(false), AvailableProcessorFeatures: []rds.AvailableProcessorFeature{},
		SupportedEngineModes: []string{"provisioned"}, SupportsStorageAutoscaling: wire.Some(false), SupportsKerberosAuthentication: wire.Some(false),
		OutpostCapable: wire.Some(false), SupportedActivityStreamModes: []string{}, SupportsGlobalDatabases: wire.Some(false),
		SupportedNetworkTypes: []string{"IPV4"}, SupportsClusters: wire.Some(true), SupportsDedicatedLogVolume: wire.Some(false),
		SupportsAdditionalStorageVolumes: wire.Some(false), SupportsHttpEndpoint: wire.Some(false),
	}
	if aurora {
		return out
	}
	limits := storageLimits(o.storage)
	out.MinStorageSize, out.MaxStorageSize = wire.Number(limits.low), wire.Number(limits.high)
	if limits.iops {
		out.SupportsIops, out.MinIopsPerDbInstance, out.MaxIopsPerDbInstance = wire.Some(true), wire.Number(limits.minIOPS), wire.Number(limits.maxIOPS)
	}
	out.SupportsStorageThroughput = wire.Some(limits.throughput)
	return out
}

// limits are those that spec.CheckStorage holds a request to.
type limits struct {
	low, high        int // GiB
	iops             bool
	minIOPS, maxIOPS int
	throughput       bool
}

func storageLimits(kind string) limits {
	l := limits{}
	l.low, l.high = spec.StorageSizes(kind)
	switch kind {
	case "io1", "io2":
		l.iops, l.minIOPS, l.maxIOPS = true, 100, 256000
	case "gp3":
		l.iops, l.minIOPS, l.maxIOPS, l.throughput = true, 1, 256000, true
	}
	return l
}
