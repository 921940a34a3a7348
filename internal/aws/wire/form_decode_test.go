package wire_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

func TestDecodeForm(t *testing.T) {
	tests := []struct {
		name, query string
		want        any
	}{
		{"nothing", "", &rds.CreateDBInstanceMessage{}},
		{
			"scalars", "DBInstanceIdentifier=a&AllocatedStorage=20&MultiAZ=true&PubliclyAccessible=false",
			&rds.CreateDBInstanceMessage{DBInstanceIdentifier: new("a"), AllocatedStorage: new(int32(20)), MultiAZ: new(true), PubliclyAccessible: new(false)},
		},
		{
			"zero is not absent", "DBName=&AllocatedStorage=0",
			&rds.CreateDBInstanceMessage{DBName: new(""), AllocatedStorage: new(int32(0))},
		},
		{
			"booleans in capitals, as Python's str writes them", "MultiAZ=True&PubliclyAccessible=FALSE",
			&rds.CreateDBInstanceMessage{MultiAZ: new(true), PubliclyAccessible: new(false)},
		},
		{"text with form syntax", "DBName=v+w%26%C3%A9%2B", &rds.CreateDBInstanceMessage{DBName: new("v w&é+")}},
		{
			"limits of an integer", "AllocatedStorage=2147483647&Iops=-2147483648",
			&rds.CreateDBInstanceMessage{AllocatedStorage: new(int32(2147483647)), Iops: new(int32(-2147483648))},
		},
		{
			"nested structure and number", "ServerlessV2ScalingConfiguration.MinCapacity=0.5&ServerlessV2ScalingConfiguration.MaxCapacity=16",
			&rds.CreateDBClusterMessage{ServerlessV2ScalingConfiguration: &rds.ServerlessV2ScalingConfiguration{MinCapacity: new(0.5), MaxCapacity: new(16.0)}},
		},
		{
			"structure given and empty", "ServerlessV2ScalingConfiguration=",
			&rds.CreateDBClusterMessage{ServerlessV2ScalingConfiguration: &rds.ServerlessV2ScalingConfiguration{}},
		},
		{
			"list of values", "VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-1&VpcSecurityGroupIds.VpcSecurityGroupId.2=sg-2",
			&rds.CreateDBInstanceMessage{VpcSecurityGroupIds: []string{"sg-1", "sg-2"}},
		},
		{
			"list of structures", "Tags.Tag.1.Key=k&Tags.Tag.1.Value=v&Tags.Tag.2.Key=l",
			&rds.CreateDBInstanceMessage{Tags: []rds.Tag{{Key: new("k"), Value: new("v")}, {Key: new("l")}}},
		},
		{
			"lists in lists", "Filters.Filter.1.Name=engine&Filters.Filter.1.Values.Value.1=a&Filters.Filter.1.Values.Value.2=b&Filters.Filter.2.Values=",
			&rds.DescribeDBInstancesMessage{Filters: []rds.Filter{{Name: new("engine"), Values: []string{"a", "b"}}, {Values: []string{}}}},
		},
		{"list given and empty", "DomainDnsIps=&Tags=", &rds.CreateDBInstanceMessage{DomainDnsIps: []string{}, Tags: []rds.Tag{}}},
		{"one empty text is no empty list", "DomainDnsIps.member.1=", &rds.CreateDBInstanceMessage{DomainDnsIps: []string{""}}},
		{"elements win over an empty list", "DomainDnsIps=&DomainDnsIps.member.1=a", &rds.CreateDBInstanceMessage{DomainDnsIps: []string{"a"}}},
		{
			"gaps, and order by number, not by text", "DomainDnsIps.member.10=j&DomainDnsIps.member.9=i&DomainDnsIps.member.700=z&DomainDnsIps.member.2=b",
			&rds.CreateDBInstanceMessage{DomainDnsIps: []string{"b", "i", "j", "z"}},
		},
		{"element given and empty", "Tags.Tag.1=&Tags.Tag.2.Key=k", &rds.CreateDBInstanceMessage{Tags: []rds.Tag{{}, {Key: new("k")}}}},
		{"elements named as old SDKs do", "SubnetIds.member.1=a&SubnetIds.member.2=b", &rds.CreateDBSubnetGroupMessage{SubnetIds: []string{"a", "b"}}},
		{"the right element name wins", "SubnetIds.member.1=a&SubnetIds.SubnetIdentifier.1=b&SubnetIds.zzz.1=c", &rds.CreateDBSubnetGroupMessage{SubnetIds: []string{"b"}}},
		{
			"map", "AdditionalEncryptionContext.entry.1.key=k&AdditionalEncryptionContext.entry.1.value=v&AdditionalEncryptionContext.entry.2.key=l",
			&rds.CreateIntegrationMessage{AdditionalEncryptionContext: map[string]string{"k": "v", "l": ""}},
		},
		{"map given and empty", "AdditionalEncryptionContext=", &rds.CreateIntegrationMessage{AdditionalEncryptionContext: map[string]string{}}},
		{"a map is no list", "AdditionalEncryptionContext.member.1.key=k", &rds.CreateIntegrationMessage{}},
		{
			"unknown names", "Action=X&Version=Y&Foo=1&Foo.Bar=2&DBName.x=3&Tags.Foo.1.Key=4&Tags.Tag=5&DBNameX=6&.=7&..=8&=9&AdditionalEncryptionContext.member.1.key=k",
			&rds.CreateDBInstanceMessage{},
		},
		{"names around a list's", "Tags-=1&Tags.=2&Tags.Tag.1.Key=k&Tags%00=3&Tags.Tag=4&Tags.Tag-=5&Tags.Tag1=6", &rds.CreateDBInstanceMessage{Tags: []rds.Tag{{Key: new("k")}}}},
		{"the first of two", "DBName=a&DBName=b", &rds.CreateDBInstanceMessage{DBName: new("a")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := emptyLike(t, tt.want)
			if err := decode(tt.query, got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeFormTimes(t *testing.T) {
	tests := map[string]time.Time{
		"2026-01-02T03:04:05Z":           time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"2026-01-02T03:04:05.678Z":       time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
		"2026-01-02T03:04:05%2B01:30":    time.Date(2026, 1, 2, 1, 34, 5, 0, time.UTC),
		"2026-01-02T03:04Z":              time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC),
		"2026-01-02T03:04:05.123456789Z": time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.UTC),
	}
	for text, want := range tests {
		got := &rds.DescribeEventsMessage{}
		if err := decode("StartTime="+text, got); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !got.StartTime.Equal(want) || got.StartTime.Location() != time.UTC {
			t.Errorf("%s became %s", text, got.StartTime)
		}
	}
}

func TestDecodeFormRefuses(t *testing.T) {
	tests := []struct {
		dst         any
		query, name string
	}{
		{&rds.CreateDBInstanceMessage{}, "AllocatedStorage=ten", "AllocatedStorage"},
		{&rds.CreateDBInstanceMessage{}, "AllocatedStorage=", "AllocatedStorage"},
		{&rds.CreateDBInstanceMessage{}, "AllocatedStorage=1.5", "AllocatedStorage"},
		{&rds.CreateDBInstanceMessage{}, "AllocatedStorage=2147483648", "AllocatedStorage"},
		{&rds.CreateDBInstanceMessage{}, "AllocatedStorage=0x10", "AllocatedStorage"},
		{&rds.CreateDBInstanceMessage{}, "MultiAZ=yes", "MultiAZ"},
		{&rds.CreateDBInstanceMessage{}, "MultiAZ=1", "MultiAZ"},
		{&rds.CreateDBInstanceMessage{}, "MultiAZ=", "MultiAZ"},
		{&rds.CreateDBInstanceMessage{}, "Tags=x", "Tags"},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag.0.Key=k", "Tags.Tag.0"},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag.01.Key=k", "Tags.Tag.01"},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag.-1.Key=k", "Tags.Tag.-1"},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag.x.Key=k", "Tags.Tag.x"},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag..Key=k", "Tags.Tag."},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag.99999999999999999999.Key=k", "Tags.Tag.99999999999999999999"},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag.1=k", "Tags.Tag.1"},
		{&rds.CreateDBInstanceMessage{}, "Tags.Tag.1=&Tags.Tag.1-=&Tags.Tag.1.Key=k", "Tags.Tag.1-"},
		{&rds.CreateDBClusterMessage{}, "ServerlessV2ScalingConfiguration=1", "ServerlessV2ScalingConfiguration"},
		{&rds.CreateDBClusterMessage{}, "ServerlessV2ScalingConfiguration.MinCapacity=NaN", "ServerlessV2ScalingConfiguration.MinCapacity"},
		{&rds.CreateDBClusterMessage{}, "ServerlessV2ScalingConfiguration.MinCapacity=inf", "ServerlessV2ScalingConfiguration.MinCapacity"},
		{&rds.CreateDBClusterMessage{}, "ServerlessV2ScalingConfiguration.MinCapacity=1e999", "ServerlessV2ScalingConfiguration.MinCapacity"},
		{&rds.DescribeEventsMessage{}, "StartTime=yesterday", "StartTime"},
		{&rds.DescribeEventsMessage{}, "StartTime=2026-01-02T03:04:05", "StartTime"},
		{&rds.DescribeEventsMessage{}, "StartTime=9999-12-31T23:59:59-14:00", "StartTime"},
		{&rds.DescribeEventsMessage{}, "StartTime=0000-01-01T00:00:00Z", "StartTime"},
		{&rds.CreateIntegrationMessage{}, "AdditionalEncryptionContext.entry.1.value=v", "AdditionalEncryptionContext.entry.1"},
		{&rds.CreateIntegrationMessage{}, "AdditionalEncryptionContext.entry.1.key=k&AdditionalEncryptionContext.entry.2.key=k", "AdditionalEncryptionContext.entry.2"},
		{&rds.CreateIntegrationMessage{}, "AdditionalEncryptionContext=x", "AdditionalEncryptionContext"},
		{&rds.ModifyDBParameterGroupMessage{}, "Parameters.Parameter.2.IsModifiable=maybe", "Parameters.Parameter.2.IsModifiable"},
	}
	for _, tt := range tests {
		t.Run(tt.query, func(t *testing.T) { wantInvalid(t, decode(tt.query, tt.dst), tt.name) })
	}
}

func TestDecodeFormIsBounded(t *testing.T) {
	values := url.Values{}
	for i := range 1000 {
		values.Set(fmt.Sprintf("DomainDnsIps.member.%d", 3*i+1), "a")
	}
	in := &rds.CreateDBInstanceMessage{}
	if err := wire.DecodeForm(values, in); err != nil || len(in.DomainDnsIps) != 1000 {
		t.Fatalf("1000 elements: %d, %v", len(in.DomainDnsIps), err)
	}
	values.Set("DomainDnsIps.member.4000000", "a")
	wantInvalid(t, wire.DecodeForm(values, in), "DomainDnsIps.member")

	type tree struct {
		Left  *tree  `wire:"Left"`
		Lists []tree `wire:"Lists,list=member"`
	}
	for _, step := range []string{"Left.", "Lists.member.1."} {
		if err := wire.DecodeForm(url.Values{strings.Repeat(step, 16) + "Left": {""}}, &tree{}); err != nil {
			t.Errorf("16 levels of %s: %v", step, err)
		}
		deep := url.Values{strings.Repeat(step, 100_000) + "Left": {""}}
		wantInvalid(t, wire.DecodeForm(deep, &tree{}), step[:4])
		if text := wire.DecodeForm(deep, &tree{}).Error(); len(text) > 500 {
			t.Errorf("the message has %d bytes", len(text))
		}
	}
}

// A message that names a value must not give a secret away, nor be as long as it.
func TestDecodeFormMessages(t *testing.T) {
	var e *wire.Error
	err := decode("AllocatedStorage="+strings.Repeat("é", 5000), &rds.CreateDBInstanceMessage{})
	if !errors.As(err, &e) || !strings.Contains(e.Message, "'éé") || len(e.Message) > 500 {
		t.Errorf("long value: %v", err)
	}
	want := "The parameter AllocatedStorage must be an integer of 32 bits, not '%d x'."
	if err := decode("AllocatedStorage=%25d+x", &rds.CreateDBInstanceMessage{}); !errors.As(err, &e) || e.Message != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDecodeFormNeedsAStructure(t *testing.T) {
	for _, dst := range []any{nil, rds.Tag{}, new(int), (*rds.Tag)(nil)} {
		if err := wire.DecodeForm(url.Values{}, dst); !errors.Is(err, wire.ErrShape) {
			t.Errorf("%T: %v", dst, err)
		}
	}
}

func decode(query string, dst any) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	return wire.DecodeForm(values, dst)
}

// emptyLike returns a new structure of the type that example points to.
func emptyLike(t *testing.T, example any) any {
	t.Helper()
	for _, s := range wire.Services() {
		for _, a := range s.Actions {
			if in := a.Input(); fmt.Sprintf("%T", in) == fmt.Sprintf("%T", example) {
				return in
			}
		}
	}
	t.Fatalf("%T is no input", example)
	return nil
}

// wantInvalid checks that err answers InvalidParameterValue, naming the parameter.
func wantInvalid(t *testing.T, err error, name string) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want InvalidParameterValue", err)
	}
	if e.Code != api.ErrInvalidParameterValue || e.Status != http.StatusBadRequest || !strings.HasPrefix(e.Message, "The parameter "+name) {
		t.Errorf("got %d %v, want one about %s", e.Status, e, name)
	}
}
