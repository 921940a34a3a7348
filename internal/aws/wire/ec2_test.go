package wire_test

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"howdah/api/ec2"
	"howdah/internal/aws/wire"
	"howdah/internal/aws/wire/shape"
)

func text(s string) *string { return &s }

// Lists are numbered without the name of their elements, as botocore sends them.
func TestEC2Form(t *testing.T) {
	const form = "GroupId=sg-1&IpPermissions.1.IpProtocol=tcp&IpPermissions.1.FromPort=1&IpPermissions.1.IpRanges.1.CidrIp=10.0.0.0/8" +
		"&IpPermissions.1.IpRanges.2.CidrIp=11.0.0.0/8&IpPermissions.2.Groups.1.GroupId=sg-2"
	values, err := url.ParseQuery(form)
	if err != nil {
		t.Fatal(err)
	}
	one := int32(1)
	want := &ec2.AuthorizeSecurityGroupIngressRequest{GroupId: text("sg-1"), IpPermissions: []ec2.IpPermission{
		{IpProtocol: text("tcp"), FromPort: &one, IpRanges: []ec2.IpRange{{CidrIp: text("10.0.0.0/8")}, {CidrIp: text("11.0.0.0/8")}}},
		{UserIdGroupPairs: []ec2.UserIdGroupPair{{GroupId: text("sg-2")}}},
	}}
	got := new(ec2.AuthorizeSecurityGroupIngressRequest)
	if err := wire.DecodeForm(values, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again := wire.EncodeForm("AuthorizeSecurityGroupIngress", "2016-11-15", want)
	again.Del("Action")
	again.Del("Version")
	if diff := cmp.Diff(values, again); diff != "" {
		t.Errorf("encoded again (-want +got):\n%s", diff)
	}
}

func TestEC2FormRefuses(t *testing.T) {
	for form, name := range map[string]string{
		"GroupId.1=a&GroupId.x=b":             "GroupId.x",
		"GroupId.0=a":                         "GroupId.0",
		"Filter.1.Value.1=a&Filter.1.Value=b": "Filter.1.Value",
		"MaxResults=many":                     "MaxResults",
		"DryRun=perhaps":                      "DryRun",
	} {
		values, err := url.ParseQuery(form)
		if err != nil {
			t.Fatal(err)
		}
		if err := wire.DecodeForm(values, new(ec2.DescribeSecurityGroupsRequest)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

func TestEC2Answer(t *testing.T) {
	var b bytes.Buffer
	out := &ec2.DescribeSecurityGroupsResult{SecurityGroups: []ec2.SecurityGroup{{GroupId: text("sg-1"), IpPermissions: []ec2.IpPermission{}}}}
	if err := wire.EncodeResult(&b, "DescribeSecurityGroups", "id", out); err != nil {
		t.Fatal(err)
	}
	const want = `<DescribeSecurityGroupsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>id</requestId>` +
		`<securityGroupInfo><item><groupId>sg-1</groupId><ipPermissions/></item></securityGroupInfo></DescribeSecurityGroupsResponse>`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for old, replacement := range map[string]string{
		"<requestId>id</requestId>":  "",
		"groupId":                    "GroupId",
		"item>":                      "member>",
		"<securityGroupInfo>":        "<x/><securityGroupInfo>",
		"http://ec2.amazonaws.com":   "http://rds.amazonaws.com",
		"<securityGroupInfo><item>":  "<securityGroupInfo>text<item>",
		"</DescribeSecurityGroupsRe": "<requestId>id</requestId></DescribeSecurityGroupsRe",
	} {
		if err := shape.Check("DescribeSecurityGroups", []byte(strings.ReplaceAll(want, old, replacement))); err == nil {
			t.Errorf("the checker takes %q in place of %q", replacement, old)
		}
	}
}

func TestEC2Error(t *testing.T) {
	var b bytes.Buffer
	e := wire.NewError(ec2.ErrInvalidGroupNotFound, "no <group>").WithHint("none")
	if err := e.EncodeFor(&b, &ec2.Service, "id"); err != nil {
		t.Fatal(err)
	}
	const want = `<Response><Errors><Error><Code>InvalidGroup.NotFound</Code><Message>no &lt;group&gt;</Message></Error></Errors><RequestID>id</RequestID></Response>`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := shape.CheckError(b.Bytes()); err != nil {
		t.Error(err)
	}
	for old, replacement := range map[string]string{
		"InvalidGroup.NotFound": "NoSuchThing", "RequestID": "RequestId", "<Errors>": `<Errors xmlns="x">`, "<Message>": "<Type>Sender</Type><Message>",
	} {
		if err := shape.CheckError([]byte(strings.ReplaceAll(want, old, replacement))); err == nil {
			t.Errorf("the checker takes %q in place of %q", replacement, old)
		}
	}
	got := wire.AsError(wire.DecodeResult(b.Bytes(), "DeleteSecurityGroup", new(ec2.DeleteSecurityGroupResult)))
	if got.Code != ec2.ErrInvalidGroupNotFound || got.Message != "no <group>" || got.Status != 400 {
		t.Errorf("decoded: %+v", got)
	}
}

func TestEC2Shown(t *testing.T) {
	action, _ := ec2.Service.Action("AuthorizeSecurityGroupIngress")
	got := wire.Shown(action, url.Values{"IpPermissions.1.IpRanges.2.CidrIp": {"10.0.0.0/8"}, "GroupId": {"sg-1"}, "ipPermissions": {"x"}, "IpPermissions.1.1": {"y"}})
	if diff := cmp.Diff(map[string]string{"IpPermissions.1.IpRanges.2.CidrIp": "10.0.0.0/8", "GroupId": "sg-1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEC2Validate(t *testing.T) {
	one := int32(1)
	err := wire.Validate(&ec2.DescribeSecurityGroupsRequest{MaxResults: &one})
	if err == nil || !strings.Contains(err.Error(), "MaxResults") {
		t.Errorf("%v", err)
	}
	err = wire.Validate(&ec2.CreateSecurityGroupRequest{GroupName: text("a")})
	if err == nil || !strings.Contains(err.Error(), "GroupDescription") {
		t.Errorf("%v", err)
	}
}
