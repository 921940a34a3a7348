package wire_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/api"
	"howdah/api/rds"
	"howdah/api/sts"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/shape"
)

func TestEncodeResult(t *testing.T) {
	const (
		ns   = ` xmlns="http://rds.amazonaws.com/doc/2014-10-31/">`
		tail = "<ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></"
	)
	tests := []struct {
		action string
		out    any
		want   string
	}{
		{"CreateDBInstance", &rds.CreateDBInstanceResult{DBInstance: &rds.DBInstance{
			DBInstanceStatus:                 new("creating"),
			VpcSecurityGroups:                []rds.VpcSecurityGroupMembership{{Status: new("active")}},
			ReadReplicaDBInstanceIdentifiers: []string{},
			InstanceCreateTime:               new(time.Date(2026, 11, 21, 3, 21, 58, 341999999, time.FixedZone("", 7200))),
			MultiAZ:                          new(false),
			AllocatedStorage:                 new(int32(0)),
			TagList:                          []rds.Tag{{Key: new("k"), Value: new("v")}, {}},
		}}, "<CreateDBInstanceResponse" + ns + "<CreateDBInstanceResult><DBInstance><DBInstanceStatus>creating</DBInstanceStatus>" +
			"<AllocatedStorage>0</AllocatedStorage><InstanceCreateTime>2026-11-21T01:21:58.341Z</InstanceCreateTime>" +
			"<VpcSecurityGroups><VpcSecurityGroupMembership><Status>active</Status></VpcSecurityGroupMembership></VpcSecurityGroups>" +
			"<MultiAZ>false</MultiAZ><ReadReplicaDBInstanceIdentifiers/>" +
			"<TagList><Tag><Key>k</Key><Value>v</Value></Tag><Tag/></TagList></DBInstance></CreateDBInstanceResult>" + tail + "CreateDBInstanceResponse>"},
		{
			"DescribeDBClusterEndpoints", &rds.DBClusterEndpointMessage{DBClusterEndpoints: []rds.DBClusterEndpoint{{Status: new("available")}}},
			"<DescribeDBClusterEndpointsResponse" + ns + "<DescribeDBClusterEndpointsResult><DBClusterEndpoints><DBClusterEndpointList><Status>available</Status>" +
				"</DBClusterEndpointList></DBClusterEndpoints></DescribeDBClusterEndpointsResult>" + tail + "DescribeDBClusterEndpointsResponse>",
		},
		{
			"DescribeDBProxies", &rds.DescribeDBProxiesResponse{DBProxies: []rds.DBProxy{{DBProxyName: new("")}}},
			"<DescribeDBProxiesResponse" + ns + "<DescribeDBProxiesResult><DBProxies><member><DBProxyName/></member></DBProxies></DescribeDBProxiesResult>" + tail + "DescribeDBProxiesResponse>",
		},
		{
			"DescribeDBInstances", &rds.DBInstanceMessage{DBInstances: []rds.DBInstance{}},
			"<DescribeDBInstancesResponse" + ns + "<DescribeDBInstancesResult><DBInstances/></DescribeDBInstancesResult>" + tail + "DescribeDBInstancesResponse>",
		},
		{
			"CreateIntegration", &rds.Integration{AdditionalEncryptionContext: map[string]string{"b": "<", "a": ""}},
			"<CreateIntegrationResponse" + ns + "<CreateIntegrationResult><AdditionalEncryptionContext><entry><key>a</key><value></value></entry>" +
				"<entry><key>b</key><value>&lt;</value></entry></AdditionalEncryptionContext></CreateIntegrationResult>" + tail + "CreateIntegrationResponse>",
		},
		{"AddTagsToResource", nil, "<AddTagsToResourceResponse" + ns + tail + "AddTagsToResourceResponse>"},
		{
			"GetCallerIdentity", &sts.GetCallerIdentityResponse{Account: new("123456789012")},
			`<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult>` + tail + "GetCallerIdentityResponse>",
		},
	}
	for _, tt := range tests {
		t.Run(tt.action, func(t *testing.T) {
			var b bytes.Buffer
			if err := wire.EncodeResult(&b, tt.action, "id", tt.out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEncodeResultRefuses(t *testing.T) {
	serverless := func(capacity float64) *rds.ModifyDBClusterResult {
		return &rds.ModifyDBClusterResult{DBCluster: &rds.DBCluster{ServerlessV2ScalingConfiguration: &rds.ServerlessV2ScalingConfigurationInfo{MinCapacity: &capacity}}}
	}
	tests := []struct {
		name, action string
		out          any
	}{
		{"unknown action", "CreateTable", nil},
		{"no output", "CreateDBInstance", nil},
		{"nil pointer", "CreateDBInstance", (*rds.CreateDBInstanceResult)(nil)},
		{"output of a void action", "AddTagsToResource", &rds.CreateDBInstanceResult{}},
		{"output of another action", "CreateDBInstance", &rds.ModifyDBInstanceResult{}},
		{"structure instead of a pointer", "CreateDBInstance", rds.CreateDBInstanceResult{}},
		{"not a number", "ModifyDBCluster", serverless(math.NaN())},
		{"infinite", "ModifyDBCluster", serverless(math.Inf(1))},
		{"year of five digits", "CreateDBInstance", &rds.CreateDBInstanceResult{DBInstance: &rds.DBInstance{InstanceCreateTime: new(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if err := wire.EncodeResult(&b, tt.action, "id", tt.out); !errors.Is(err, wire.ErrShape) || b.Len() > 0 {
				t.Errorf("got %v and %q", err, b.Bytes())
			}
		})
	}
}

// Every character arrives as it was sent, but for those that XML cannot hold.
func TestEveryCharacter(t *testing.T) {
	var sent, want strings.Builder
	for r := rune(0); r <= 0x10FFFF; r++ {
		if r >= 0x3000 && r < 0xD000 || r > 0x10100 && r < 0x10FF00 {
			continue // nothing new in between
		}
		sent.WriteRune(r)
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			want.WriteRune('\uFFFD')
		} else {
			want.WriteRune(r)
		}
	}
	sent.WriteString("a\xff\xc3b\r\n\xed\xa0\x80") // stray bytes, a cut-off character, a surrogate
	want.WriteString("a\uFFFD\uFFFDb\r\n\uFFFD\uFFFD\uFFFD")
	text := sent.String()
	body := encode(t, "DownloadDBLogFilePortion", &rds.DownloadDBLogFilePortionDetails{LogFileData: &text})
	got := &rds.DownloadDBLogFilePortionDetails{}
	if err := wire.DecodeResult(body, "DownloadDBLogFilePortion", got); err != nil {
		t.Fatal(err)
	}
	wantRunes, gotRunes := []rune(want.String()), []rune(*got.LogFileData)
	for i := range min(len(wantRunes), len(gotRunes)) {
		if wantRunes[i] != gotRunes[i] {
			t.Fatalf("character %d of %d: %U became %U", i, len(wantRunes), wantRunes[i], gotRunes[i])
		}
	}
	if len(wantRunes) != len(gotRunes) {
		t.Errorf("%d characters became %d", len(wantRunes), len(gotRunes))
	}
}

// Buffers are shared between requests; documents must not be.
func TestEncodeResultConcurrently(t *testing.T) {
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			want := &rds.DBInstanceMessage{Marker: new(strings.Repeat(strconv.Itoa(i), 10_000))}
			for range 50 {
				var b bytes.Buffer
				got := &rds.DBInstanceMessage{}
				if err := wire.EncodeResult(&b, "DescribeDBInstances", "id", want); err != nil {
					t.Error(err)
				}
				if err := wire.DecodeResult(b.Bytes(), "DescribeDBInstances", got); err != nil || *got.Marker != *want.Marker {
					t.Errorf("another document: %v", err)
				}
			}
		})
	}
	group.Wait()
}

func TestErrorDocument(t *testing.T) {
	const xmlns = "http://rds.amazonaws.com/doc/2014-10-31/"
	tests := []struct {
		err  *wire.Error
		want string
	}{
		{
			wire.NewError(rds.ErrDBInstanceNotFound, "DBInstance %s not found.", "z<z"),
			"<Error><Type>Sender</Type><Code>DBInstanceNotFound</Code><Message>DBInstance z&lt;z not found.</Message></Error>",
		},
		{
			wire.NewError(api.ErrInternalFailure, "100%% broken").WithHint("try later"),
			"<Error><Type>Receiver</Type><Code>InternalFailure</Code><Message>100% broken</Message><Hint>try later</Hint></Error>",
		},
	}
	for _, tt := range tests {
		t.Run(tt.err.Code, func(t *testing.T) {
			var b bytes.Buffer
			if err := tt.err.Encode(&b, xmlns, "id"); err != nil {
				t.Fatal(err)
			}
			want := `<ErrorResponse xmlns="` + xmlns + `">` + tt.want + "<RequestId>id</RequestId></ErrorResponse>"
			if diff := cmp.Diff(want, b.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := shape.CheckError(b.Bytes()); err != nil {
				t.Error(err)
			}
			var got *wire.Error
			if err := wire.DecodeResult(b.Bytes(), "AddTagsToResource", nil); !errors.As(err, &got) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.err, got); diff != "" {
				t.Errorf("the error changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeResultRefuses(t *testing.T) {
	tests := map[string]string{
		"nothing":          "",
		"not XML":          "no such host",
		"another action":   "<DeleteDBInstanceResponse/>",
		"no wrapper":       "<DescribeDBInstancesResponse><X/></DescribeDBInstancesResponse>",
		"cut off":          "<DescribeDBInstancesResponse><DescribeDBInstancesResult><DBInstances><DBInstance>",
		"bad integer":      "<DescribeDBInstancesResponse><DescribeDBInstancesResult><DBInstances><DBInstance><AllocatedStorage>x</AllocatedStorage></DBInstance></DBInstances></DescribeDBInstancesResult></DescribeDBInstancesResponse>",
		"error, no code":   "<ErrorResponse><Error/></ErrorResponse>",
		"error, cut off":   "<ErrorResponse><Error><Code>DBInstanceNotFound</Code></Error>",
		"cut off in value": "<DescribeDBInstancesResponse><DescribeDBInstancesResult><Marker>a",
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			err := wire.DecodeResult([]byte(body), "DescribeDBInstances", &rds.DBInstanceMessage{})
			if !errors.Is(err, wire.ErrResponse) || strings.Contains(err.Error(), "%!") {
				t.Errorf("got %v", err)
			}
		})
	}
	if err := wire.DecodeResult(nil, "DescribeDBInstances", &rds.DBClusterMessage{}); !errors.Is(err, wire.ErrShape) {
		t.Errorf("output of another action: %v", err)
	}
}

// Newer services add elements; a client must not stumble over them.
func TestDecodeResultSkipsTheUnknown(t *testing.T) {
	body := xml.Header + `<DescribeDBInstancesResponse xmlns="x"><!-- c --><New><Deep/></New><DescribeDBInstancesResult><New>1</New><Marker>a<b>c</b>d</Marker>
		<DBInstances><DBInstance><New/><Engine>postgres</Engine></DBInstance><New>2</New></DBInstances></DescribeDBInstancesResult></DescribeDBInstancesResponse>`
	got := &rds.DBInstanceMessage{}
	if err := wire.DecodeResult([]byte(body), "DescribeDBInstances", got); err != nil {
		t.Fatal(err)
	}
	want := &rds.DBInstanceMessage{Marker: new("ad"), DBInstances: []rds.DBInstance{{Engine: new("postgres")}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
