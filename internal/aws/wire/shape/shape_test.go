package shape

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

const (
	ns       = `xmlns="http://rds.amazonaws.com/doc/2014-10-31/"`
	metadata = "<ResponseMetadata><RequestId>id</RequestId></ResponseMetadata>"
)

// instances is an answer of DescribeDBInstances around one instance's members.
func instances(members string) string {
	return "<DescribeDBInstancesResponse " + ns + "><DescribeDBInstancesResult><DBInstances><DBInstance>" + members +
		"</DBInstance></DBInstances></DescribeDBInstancesResult>" + metadata + "</DescribeDBInstancesResponse>"
}

func document(action, result string) string {
	return "<" + action + "Response " + ns + ">" + result + metadata + "</" + action + "Response>"
}

func TestCheckAccepts(t *testing.T) {
	tests := []struct{ name, action, body string }{
		{"an instance", "DescribeDBInstances", instances(`<DBInstanceIdentifier>a</DBInstanceIdentifier><AllocatedStorage>20</AllocatedStorage>
			<MultiAZ>false</MultiAZ><InstanceCreateTime>2026-11-21T01:21:58.341Z</InstanceCreateTime>
			<TagList><Tag><Key>k</Key><Value></Value></Tag></TagList><ReadReplicaDBInstanceIdentifiers/><Endpoint><Port>5432</Port></Endpoint>`)},
		{"a declaration", "AddTagsToResource", `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + document("AddTagsToResource", "") + "\n"},
		{"an empty result", "DescribeDBInstances", document("DescribeDBInstances", "<DescribeDBInstancesResult/>")},
		{"a number", "DescribeServerlessV2PlatformVersions", document("DescribeServerlessV2PlatformVersions",
			"<DescribeServerlessV2PlatformVersionsResult><ServerlessV2PlatformVersions/></DescribeServerlessV2PlatformVersionsResult>")},
		{"another service", "GetCallerIdentity", `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">` +
			"<GetCallerIdentityResult><Account>123456789012</Account></GetCallerIdentityResult>" + metadata + "</GetCallerIdentityResponse>"},
		{"a map", "CreateIntegration", document("CreateIntegration", "<CreateIntegrationResult><AdditionalEncryptionContext><entry><key>a</key><value/></entry></AdditionalEncryptionContext></CreateIntegrationResult>")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := Check(tt.action, []byte(tt.body)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckFinds(t *testing.T) {
	good := instances("<Engine>postgres</Engine>")
	if err := Check("DescribeDBInstances", []byte(good)); err != nil {
		t.Fatal(err)
	}
	const at = "DescribeDBInstancesResponse"
	const one = at + "/DescribeDBInstancesResult[1]/DBInstances[1]/DBInstance[1]"
	integration := func(s string) string {
		return document("CreateIntegration", "<CreateIntegrationResult>"+s+"</CreateIntegrationResult>")
	}
	tests := []struct{ name, action, body, fault string }{
		{"unknown element", "", instances("<Engin>postgres</Engin>"), one + "/Engin[1] is unknown in DBInstance"},
		{"name in another case", "", instances("<engine>postgres</engine>"), one + "/engine[1] is unknown in DBInstance"},
		{"wrong list element", "", instances("<TagList><member><Key>k</Key></member></TagList>"), one + "/TagList[1]/member[1] is unknown"},
		{"elements that do not match", "", strings.ReplaceAll(good, "<DBInstance>", "<member>"), "element <member> closed by </DBInstance>"},
		{"list without elements' level", "", instances("<TagList><Key>k</Key></TagList>"), one + "/TagList[1]/Key[1] is unknown"},
		{"text in a list", "", instances("<TagList>k</TagList>"), one + `/TagList[1] has the text "k"`},
		{"text in a structure", "", instances("running"), one + ` has the text "running"`},
		{"element in a value", "", instances("<Engine><b>postgres</b></Engine>"), one + "/Engine[1]/b[1] is inside a value"},
		{
			"element in a listed value", "", instances("<ReadReplicaDBInstanceIdentifiers><ReadReplicaDBInstanceIdentifier><b/></ReadReplicaDBInstanceIdentifier></ReadReplicaDBInstanceIdentifiers>"),
			one + "/ReadReplicaDBInstanceIdentifiers[1]/ReadReplicaDBInstanceIdentifier[1]/b[1] is inside a value",
		},
		{"value twice", "", instances("<Engine>a</Engine><Engine>a</Engine>"), one + "/Engine[2] is there twice"},
		{"list twice", "", instances("<TagList/><TagList/>"), one + "/TagList[2] is there twice"},
		{"attribute", "", instances(`<Engine a="b">a</Engine>`), one + "/Engine[1] has the attribute a"},
		{"attribute of the root", "", strings.Replace(good, ns, ns+` a="b"`, 1), at + " has the attribute a"},
		{"xsi attribute", "", instances(`<Engine xsi:nil="true"/>`), one + "/Engine[1] has the attribute xsi:nil"},
		{"integer, a word", "", instances("<AllocatedStorage>ten</AllocatedStorage>"), one + `/AllocatedStorage[1] has "ten", not an integer of 32 bits`},
		{"integer, empty", "", instances("<AllocatedStorage/>"), one + `/AllocatedStorage[1] has "", not an integer of 32 bits`},
		{"integer, too large", "", instances("<AllocatedStorage>2147483648</AllocatedStorage>"), one + `/AllocatedStorage[1] has "2147483648", not an integer of 32 bits`},
		{"integer, spaced", "", instances("<AllocatedStorage> 1</AllocatedStorage>"), one + `/AllocatedStorage[1] has " 1", not an integer of 32 bits`},
		{"integer, odd form", "", instances("<AllocatedStorage>+01</AllocatedStorage>"), one + `/AllocatedStorage[1] has "+01", not an integer of 32 bits`},
		{"boolean, Python's", "", instances("<MultiAZ>True</MultiAZ>"), one + `/MultiAZ[1] has "True", not true or false`},
		{"boolean, a digit", "", instances("<MultiAZ>1</MultiAZ>"), one + `/MultiAZ[1] has "1", not true or false`},
		{"time without milliseconds", "", instances("<InstanceCreateTime>2026-11-21T01:21:58Z</InstanceCreateTime>"), one + `/InstanceCreateTime[1] has "2026-11-21T01:21:58Z", not a time with milliseconds and Z`},
		{"time with a zone", "", instances("<InstanceCreateTime>2026-11-21T01:21:58.341+00:00</InstanceCreateTime>"), one + `/InstanceCreateTime[1] has "2026-11-21T01:21:58.341+00:00", not a time with milliseconds and Z`},
		{"time that is none", "", instances("<InstanceCreateTime>2026-13-21T01:21:58.341Z</InstanceCreateTime>"), one + `/InstanceCreateTime[1] has "2026-13-21T01:21:58.341Z", not a time with milliseconds and Z`},
		{"time as seconds", "", instances("<InstanceCreateTime>1763687518</InstanceCreateTime>"), one + `/InstanceCreateTime[1] has "1763687518", not a time with milliseconds and Z`},
		{
			"number, not finite", "ModifyDBCluster", document("ModifyDBCluster", "<ModifyDBClusterResult><DBCluster><ServerlessV2ScalingConfiguration><MinCapacity>NaN</MinCapacity></ServerlessV2ScalingConfiguration></DBCluster></ModifyDBClusterResult>"),
			`ModifyDBClusterResponse/ModifyDBClusterResult[1]/DBCluster[1]/ServerlessV2ScalingConfiguration[1]/MinCapacity[1] has "NaN", not a number`,
		},
		{
			"value outside of an enum", "CreateIntegration", integration("<Status>broken</Status>"),
			`CreateIntegrationResponse/CreateIntegrationResult[1]/Status[1] has "broken", not one of [creating active modifying failed deleting syncing needs_attention]`,
		},
		{
			"value outside of a pattern", "CreateIntegration", integration("<IntegrationName>-</IntegrationName>"),
			`CreateIntegrationResponse/CreateIntegrationResult[1]/IntegrationName[1] has "-", which does not match [a-zA-Z](?:-?[a-zA-Z0-9]+)*`,
		},
		{"value too short", "CreateIntegration", integration("<TargetArn>arn</TargetArn>"), "CreateIntegrationResponse/CreateIntegrationResult[1]/TargetArn[1] has 3 characters, outside of 20..2048"},
		{
			"map without entries", "CreateIntegration", integration("<AdditionalEncryptionContext><key>a</key></AdditionalEncryptionContext>"),
			"CreateIntegrationResponse/CreateIntegrationResult[1]/AdditionalEncryptionContext[1]/key[1] is unknown",
		},
		{
			"map entry without value", "CreateIntegration", integration("<AdditionalEncryptionContext><entry><key>a</key></entry></AdditionalEncryptionContext>"),
			"CreateIntegrationResponse/CreateIntegrationResult[1]/AdditionalEncryptionContext[1]/entry[1] lacks the element value",
		},
		{
			"required member missing", "CreateIntegration", integration("<Errors><IntegrationError/></Errors>"),
			"CreateIntegrationResponse/CreateIntegrationResult[1]/Errors[1]/IntegrationError[1] lacks the element ErrorCode",
		},
		{"no wrapper", "", document("DescribeDBInstances", "<DBInstances/>"), at + " lacks the element DescribeDBInstancesResult"},
		{"another wrapper", "", strings.ReplaceAll(good, "DescribeDBInstancesResult", "DescribeDBInstanceResult"), at + "/DescribeDBInstanceResult[1] is unknown"},
		{"wrapper twice", "", document("DescribeDBInstances", "<DescribeDBInstancesResult/><DescribeDBInstancesResult/>"), at + "/DescribeDBInstancesResult[2] is there twice"},
		{"wrapper of a void action", "AddTagsToResource", document("AddTagsToResource", "<AddTagsToResourceResult/>"), "AddTagsToResourceResponse/AddTagsToResourceResult[1] is unknown"},
		{"no metadata", "", strings.Replace(good, metadata, "", 1), at + " lacks the element ResponseMetadata"},
		{"no request id", "", strings.Replace(good, "<RequestId>id</RequestId>", "", 1), at + "/ResponseMetadata[2] lacks the element RequestId"},
		{"empty request id", "", strings.Replace(good, "<RequestId>id</RequestId>", "<RequestId/>", 1), at + "/ResponseMetadata[2]/RequestId[1] is empty"},
		{"another action's answer", "AddTagsToResource", document("RemoveTagsFromResource", ""), "RemoveTagsFromResourceResponse should be AddTagsToResourceResponse"},
		{"an error document", "AddTagsToResource", "<ErrorResponse " + ns + "/>", "ErrorResponse should be AddTagsToResourceResponse"},
		{"no namespace", "", strings.Replace(good, ns, "", 1), at + ` has the namespace "", not "http://rds.amazonaws.com/doc/2014-10-31/"`},
		{"namespace of another version", "", strings.Replace(good, "2014-10-31", "2013-09-09", 1), at + ` has the namespace "http://rds.amazonaws.com/doc/2013-09-09/", not "http://rds.amazonaws.com/doc/2014-10-31/"`},
		{"namespace inside", "", instances(`<Engine xmlns="x">a</Engine>`), one + `/Engine[1] has the namespace "x"`},
		{"comment", "", instances("<!-- a -->"), "xml.Comment"},
		{"instruction", "", instances("<?a b?>"), "xml.ProcInst"},
		{"document type", "", "<!DOCTYPE a>" + good, "xml.Directive"},
		{"text in front", "", "a" + good, "xml.CharData"},
		{"second document", "", good + good, "behind the end"},
		{"cut off", "", good[:len(good)-10], "unexpected EOF"},
		{"nothing", "", "", "EOF"},
		{"too deep", "", instances(strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100)), "too deep"},
		{"unknown action", "DescribeTables", document("DescribeTables", ""), "no service has this action"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			action := tt.action
			if action == "" {
				action = "DescribeDBInstances"
			}
			wantFault(t, Check(action, []byte(tt.body)), tt.fault)
		})
	}
}

// All faults are reported at once, in the order of the document.
func TestCheckFindsAll(t *testing.T) {
	err := Check("DescribeDBInstances", []byte(instances("<A/><MultiAZ>1</MultiAZ><B/>")))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], "/A[1] ") || !strings.Contains(lines[2], "/MultiAZ[2] ") || !strings.Contains(lines[3], "/B[3] ") {
		t.Errorf("got %v", err)
	}
}

func TestCheckError(t *testing.T) {
	const good = "<ErrorResponse " + ns + "><Error><Type>Sender</Type><Code>DBInstanceNotFound</Code><Message>m</Message></Error><RequestId>id</RequestId></ErrorResponse>"
	tests := []struct{ name, old, replacement, fault string }{
		{"good", "", "", "-"},
		{"good, of the server", "<Type>Sender</Type><Code>DBInstanceNotFound", "<Type>Receiver</Type><Code>InternalFailure", "-"},
		{"good, with a hint", "</Message>", "</Message><Hint>h</Hint>", "-"},
		{"shape's name as the code", "DBInstanceNotFound", "DBInstanceNotFoundFault", `ErrorResponse/Error[1] has the code "DBInstanceNotFoundFault", which no model has`},
		{"wrong type", "Sender", "Receiver", `ErrorResponse/Error[1] has the type "Receiver", not "Sender"`},
		{"no message", "<Message>m</Message>", "", "ErrorResponse/Error[1] lacks the element Message"},
		{"empty message", "<Message>m</Message>", "<Message/>", "ErrorResponse/Error[1]/Message[3] is empty"},
		{"no request id", "<RequestId>id</RequestId>", "", "ErrorResponse lacks the element RequestId"},
		{"unknown element", "<RequestId>", "<Detail/><RequestId>", "ErrorResponse/Detail[2] is unknown"},
		{"unknown namespace", "2014-10-31", "2014-10-30", `ErrorResponse has the unknown namespace "http://rds.amazonaws.com/doc/2014-10-30/"`},
		{"not an error", "ErrorResponse", "Error", "Error should be ErrorResponse"},
		{"cut off", "</ErrorResponse>", "", "EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckError([]byte(strings.ReplaceAll(good, tt.old, tt.replacement)))
			if tt.old == "" {
				err = CheckError([]byte(good))
			}
			if tt.fault != "-" {
				wantFault(t, err, tt.fault)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// wantFault checks that the error has a line that is or, for faults of the XML
// itself, contains the fault.
func wantFault(t *testing.T, err error, fault string) {
	t.Helper()
	if !errors.Is(err, ErrDiffers) {
		t.Fatalf("got %v, want a fault", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if !slices.Contains(lines[1:], fault) && (len(lines) > 1 || !strings.Contains(lines[0], fault)) {
		t.Errorf("got  %v\nwant %s", err, fault)
	}
}
