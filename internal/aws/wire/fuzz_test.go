package wire_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

// FuzzDecodeForm checks that any query decodes or is answered with an error of
// the API, and that what was decoded survives being sent again.
func FuzzDecodeForm(f *testing.F) {
	seeds := map[string]string{
		"CreateDBInstance":              "DBInstanceIdentifier=a&AllocatedStorage=20&MultiAZ=true&Tags.Tag.2.Key=k&Tags.Tag.1=&DomainDnsIps=&SubnetIds.member.1=x",
		"CreateDBCluster":               "ServerlessV2ScalingConfiguration.MinCapacity=0.5&ScalingConfiguration=&AvailabilityZones.AvailabilityZone.1=a",
		"CreateIntegration":             "AdditionalEncryptionContext.entry.1.key=k&AdditionalEncryptionContext.entry.1.value=v",
		"DescribeEvents":                "StartTime=2026-01-02T03:04:05.6Z&Filters.Filter.1.Values.Value.10=a&Filters.Filter.1.Values.Value.9=b",
		"ModifyOptionGroup":             "OptionsToInclude.OptionConfiguration.1.OptionSettings.OptionSetting.1.Value=a",
		"RestoreDBClusterToPointInTime": "RestoreToTime=2026-01-02T03:04Z&TagSpecifications.item.1.Tags.Tag.1.Key=k",
	}
	for action, query := range seeds {
		f.Add(action, query)
	}
	f.Fuzz(func(t *testing.T, action, query string) {
		a, ok := rds.Service.Action(action)
		values, err := url.ParseQuery(query)
		if !ok || err != nil {
			return
		}
		in, again := a.Input(), a.Input()
		if err := wire.DecodeForm(values, in); err != nil {
			if _, ok := errors.AsType[*wire.Error](err); !ok {
				t.Fatalf("not an error of the API: %v", err)
			}
			return
		}
		if err := wire.Validate(in); err != nil {
			if _, ok := errors.AsType[*wire.Error](err); !ok {
				t.Fatalf("not an error of the API: %v", err)
			}
		}
		if err := wire.DecodeForm(wire.EncodeForm(action, rds.Service.Version, in), again); err != nil {
			t.Fatalf("sent again: %v", err)
		}
		if diff := cmp.Diff(in, again); diff != "" {
			t.Fatalf("the input changed when sent again:\n%s", diff)
		}
	})
}
