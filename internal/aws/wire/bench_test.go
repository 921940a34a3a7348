package wire_test

import (
	"io"
	"net/url"
	"reflect"
	"testing"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

// typicalForm is what a user's CreateDBInstance sends.
const typicalForm = "Action=CreateDBInstance&Version=2014-10-31&DBInstanceIdentifier=orders&Engine=postgres&EngineVersion=16.4" +
	"&DBInstanceClass=db.r6g.large&AllocatedStorage=100&MasterUsername=app&MasterUserPassword=made-up-secret&MultiAZ=true" +
	"&StorageType=gp3&DBSubnetGroupName=main&BackupRetentionPeriod=7&DeletionProtection=true" +
	"&VpcSecurityGroupIds.VpcSecurityGroupId.1=sg-1&VpcSecurityGroupIds.VpcSecurityGroupId.2=sg-2" +
	"&Tags.Tag.1.Key=team&Tags.Tag.1.Value=shop&Tags.Tag.2.Key=env&Tags.Tag.2.Value=prod&EnableCloudwatchLogsExports.member.1=postgresql"

func parsed(b *testing.B, query string) url.Values {
	values, err := url.ParseQuery(query)
	if err != nil {
		b.Fatal(err)
	}
	return values
}

func BenchmarkDecodeCreateDBInstance(b *testing.B) {
	values := parsed(b, typicalForm)
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.DecodeForm(values, &rds.CreateDBInstanceMessage{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Every member of CreateDBInstance is set.
func BenchmarkDecodeCreateDBInstanceFull(b *testing.B) {
	in := filled(b, &rds.Service, &rds.CreateDBInstanceMessage{})
	values := wire.EncodeForm("CreateDBInstance", rds.Service.Version, in)
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.DecodeForm(values, &rds.CreateDBInstanceMessage{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidateCreateDBInstance(b *testing.B) {
	in := &rds.CreateDBInstanceMessage{}
	if err := wire.DecodeForm(parsed(b, typicalForm), in); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.Validate(in); err != nil {
			b.Fatal(err)
		}
	}
}

// 100 instances, each with all of its 94 members and three elements a list.
func BenchmarkEncodeDescribeDBInstances(b *testing.B) {
	out := hundredInstances(b)
	body := encode(b, "DescribeDBInstances", out)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.EncodeResult(io.Discard, "DescribeDBInstances", "id", out); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeDescribeDBInstances(b *testing.B) {
	body := encode(b, "DescribeDBInstances", hundredInstances(b))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if err := wire.DecodeResult(body, "DescribeDBInstances", &rds.DBInstanceMessage{}); err != nil {
			b.Fatal(err)
		}
	}
}

func hundredInstances(b *testing.B) *rds.DBInstanceMessage {
	one := rds.DBInstance{}
	f := &filler{t: b, limit: rds.Service.Checks, extra: " is a typical value"}
	f.structure(reflect.ValueOf(&one).Elem())
	out := &rds.DBInstanceMessage{}
	for range 100 {
		out.DBInstances = append(out.DBInstances, one)
	}
	return out
}
