package catalogue

import (
	"cmp"
	"context"
	"slices"

	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/model/spec"
)

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
func (s *service) describeOrderableDBInstanceOptions(ctx context.Context, c front.Call, in *rds.DescribeOrderableDBInstanceOptionsMessage) (*rds.OrderableDBInstanceOptionsMessage, error) {
	if err := s.Fresh(ctx); err != nil {
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

func (s *service) options(offers []look.Offer, version, class *string) []option {
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
func (s *service) hasRoom(class spec.Class) bool {
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

// describeValidDBInstanceModifications says what storage an instance can be given:
// it can only grow, and by a tenth at least.
func (s *service) describeValidDBInstanceModifications(ctx context.Context, c front.Call, in *rds.DescribeValidDBInstanceModificationsMessage) (*rds.DescribeValidDBInstanceModificationsResult, error) {
	if err := s.Fresh(ctx); err != nil {
		return nil, err
	}
	l := s.looks.Of(c.Account)
	record, err := l.FindInstance(c.Scope, wire.Or(in.DBInstanceIdentifier, ""))
	if err != nil {
		return nil, err
	}
	i := record.Value
	if status := l.Status(i); status == plan.Deleting || status == plan.Creating {
		return nil, wire.NewError(rds.ErrInvalidDBInstanceState, "DB instance %s is not in the available state: it is %s.", i.Name, status)
	}
	out := &rds.ValidDBInstanceModificationsMessage{
		Storage: []rds.ValidStorageOptions{}, ValidProcessorFeatures: []rds.AvailableProcessorFeature{}, SupportsDedicatedLogVolume: wire.Some(false),
	}
	if i.Cluster == "" {
		for _, kind := range storageOf[spec.Postgres] {
			out.Storage = append(out.Storage, validStorage(kind, i.Storage))
		}
	}
	return &rds.DescribeValidDBInstanceModificationsResult{ValidDBInstanceModificationsMessage: out}, nil
}

func validStorage(kind string, size int) rds.ValidStorageOptions {
	limits := storageLimits(kind)
	ranges := func(from, to int) []rds.Range {
		return []rds.Range{{From: wire.Number(from), To: wire.Number(to), Step: wire.Number(1)}}
	}
	out := rds.ValidStorageOptions{StorageType: wire.Some(kind), SupportsStorageAutoscaling: wire.Some(false), StorageSize: []rds.Range{}}
	if size >= limits.low {
		out.StorageSize = ranges(size, size)
	}
	if larger := max((size*11+9)/10, limits.low); larger <= limits.high {
		out.StorageSize = append(out.StorageSize, ranges(larger, limits.high)...)
	}
	if limits.iops {
		out.ProvisionedIops = ranges(limits.minIOPS, limits.maxIOPS)
	}
	return out
}
