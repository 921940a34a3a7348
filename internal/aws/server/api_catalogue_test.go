package server

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"howdah/internal/identity/certs"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
	"howdah/internal/state"
)

const (
	showVersions = "DescribeDBEngineVersions?"
	majors       = "DescribeDBMajorEngineVersions?"
	orderable    = "DescribeOrderableDBInstanceOptions?Engine=postgres"
	filterOf     = "&Filters.Filter.1.Name=%s&Filters.Filter.1.Values.Value.1=%s"
	badFilter    = "Filters.Filter.1.Name=x&Filters.Filter.1.Values.Value.1=y"
)

// all the scenarios play with PostgreSQL 15.18 on every host.
var catalogueScenarios = []scenario{
	{
		name: "versions of all engines", call: showVersions,
		want: []string{
			"DBEngineVersions/DBEngineVersion#2", "DBEngineVersions/DBEngineVersion[1]/Engine=aurora-postgresql", "DBEngineVersions/DBEngineVersion[2]/Engine=postgres",
			"DBEngineVersions/DBEngineVersion[2]/EngineVersion=15.18", "DBEngineVersions/DBEngineVersion[2]/DBParameterGroupFamily=postgres15",
			"DBEngineVersions/DBEngineVersion[2]/Status=available", "!DBEngineVersions/DBEngineVersion/SupportedCharacterSets", "!Marker",
			"DBEngineVersions/DBEngineVersion[1]/SupportedCACertificateIdentifiers/member=howdah-ca",
		},
	},
	{name: "of one engine", call: showVersions + "Engine=postgres", want: []string{"DBEngineVersions/DBEngineVersion#1"}},
	{name: "with character sets", call: showVersions + "Engine=postgres&ListSupportedCharacterSets=true", want: []string{"DBEngineVersions/DBEngineVersion/SupportedCharacterSets/CharacterSet/CharacterSetName=UTF8"}},
	{name: "of a major version", call: showVersions + "Engine=postgres&EngineVersion=15", want: []string{"DBEngineVersions/DBEngineVersion#1"}},
	{name: "of a full version", call: showVersions + "EngineVersion=15.18&DefaultOnly=true", want: []string{"DBEngineVersions/DBEngineVersion#2"}},
	{name: "of a version that is not installed", call: showVersions + "EngineVersion=14.1", want: []string{"DBEngineVersions/DBEngineVersion#0"}},
	{name: "of a family", call: showVersions + "DBParameterGroupFamily=aurora-postgresql15", want: []string{"DBEngineVersions/DBEngineVersion#1"}},
	{
		name: "by filters", call: showVersions + fmt.Sprintf(filterOf, "engine", "postgres") + "&Filters.Filter.2.Name=status&Filters.Filter.2.Values.Value.1=available",
		want: []string{"DBEngineVersions/DBEngineVersion#1"},
	},
	{name: "by a filter that excludes all", call: showVersions + fmt.Sprintf(filterOf, "engine-mode", "serverless"), want: []string{"DBEngineVersions/DBEngineVersion#0"}},
	{name: "of an engine that is not there", call: showVersions + "Engine=mysql", code: badValue, message: "Unrecognized engine name: mysql"},
	{name: "of showVersions, a filter that is not there", call: showVersions + badFilter, code: badValue, message: "Unrecognized filter name: x"},
	{name: "of showVersions, a small page", call: showVersions + "MaxRecords=5", code: badValue, message: "MaxRecords"},
	{name: "of showVersions, a wrong marker", call: showVersions + "Marker=x", code: badValue, message: "Invalid marker"},

	{
		name: "major versions", call: majors + "Engine=postgres",
		want: []string{
			"DBMajorEngineVersions/DBMajorEngineVersion#1", "DBMajorEngineVersions/DBMajorEngineVersion/MajorEngineVersion=15",
			"DBMajorEngineVersions/DBMajorEngineVersion/SupportedEngineLifecycles/SupportedEngineLifecycle/LifecycleSupportEndDate=2027-11-11T00:00:00.000Z",
		},
	},
	{name: "one major version", call: majors + "MajorEngineVersion=15", want: []string{"DBMajorEngineVersions/DBMajorEngineVersion#2"}},
	{name: "a major version that is not installed", call: majors + "MajorEngineVersion=16", want: []string{"DBMajorEngineVersions/DBMajorEngineVersion#0"}},
	{name: "major versions of nothing", call: majors + "Engine=oracle", code: badValue},

	{
		name: "options of one class", call: orderable + "&DBInstanceClass=db.t3.micro&EngineVersion=15",
		want: []string{
			"OrderableDBInstanceOptions/OrderableDBInstanceOption#5", "OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/StorageType=gp2",
			"OrderableDBInstanceOptions/OrderableDBInstanceOption[3]/MinIopsPerDbInstance=100", "OrderableDBInstanceOptions/OrderableDBInstanceOption[3]/MinStorageSize=100",
			"OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/AvailabilityZones/AvailabilityZone#3",
			"OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/AvailabilityZones/AvailabilityZone/Name=us-east-1a",
			"OrderableDBInstanceOptions/OrderableDBInstanceOption[1]/MultiAZCapable=true",
		},
	},
	{
		name: "options of Aurora", call: "DescribeOrderableDBInstanceOptions?Engine=aurora-postgresql&DBInstanceClass=db.r5.large",
		want: []string{
			"OrderableDBInstanceOptions/OrderableDBInstanceOption#2", "OrderableDBInstanceOptions/OrderableDBInstanceOption/MultiAZCapable=false",
			"!OrderableDBInstanceOptions/OrderableDBInstanceOption/MaxStorageSize",
		},
	},
	{name: "a full page of options", call: orderable, want: []string{"OrderableDBInstanceOptions/OrderableDBInstanceOption#100"}},
	{name: "options of a license that is not there", call: orderable + "&LicenseModel=bring-your-own-license", want: []string{"OrderableDBInstanceOptions/OrderableDBInstanceOption#0"}},
	{name: "options outside a VPC", call: orderable + "&Vpc=false", want: []string{"OrderableDBInstanceOptions/OrderableDBInstanceOption#0"}},
	{name: "options of a version that is not installed", call: orderable + "&EngineVersion=14", want: []string{"OrderableDBInstanceOptions/OrderableDBInstanceOption#0"}},
	{name: "options without an engine", call: "DescribeOrderableDBInstanceOptions", code: missing, message: "Engine"},
	{name: "options of another engine", call: "DescribeOrderableDBInstanceOptions?Engine=mariadb", code: badValue, message: "mariadb"},
	{name: "options, too large a page", call: orderable + "&MaxRecords=1001", code: badValue, message: "1000"},
	{name: "options, a filter", call: orderable + "&" + badFilter, code: badValue},

	{name: "serverless versions", call: "DescribeServerlessV2PlatformVersions", want: []string{"ServerlessV2PlatformVersions/member#0"}},
	{name: "serverless versions of nothing", call: "DescribeServerlessV2PlatformVersions?Engine=x", code: badValue},
	{name: "serverless versions, a filter", call: "DescribeServerlessV2PlatformVersions?" + badFilter, code: badValue},

	{name: "certificates", call: "DescribeCertificates", want: []string{
		"Certificates/Certificate#1", "Certificates/Certificate/CertificateIdentifier=howdah-ca", "Certificates/Certificate/CertificateType=CA",
		"Certificates/Certificate/CertificateArn=arn:aws:rds:us-east-1::cert:howdah-ca", "DefaultCertificateForNewLaunches=howdah-ca",
	}},
	{name: "one certificate", call: "DescribeCertificates?CertificateIdentifier=howdah-ca", want: []string{"Certificates/Certificate#1"}},
	{name: "a certificate that is not there", call: "DescribeCertificates?CertificateIdentifier=rds-ca-rsa2048-g1", code: "CertificateNotFound", message: "rds-ca-rsa2048-g1"},
	{name: "certificates, a filter", call: "DescribeCertificates?" + badFilter, code: badValue},
	{name: "choose the certificate", call: "ModifyCertificates?CertificateIdentifier=howdah-ca", want: []string{"Certificate/CustomerOverride=true"}},
	{name: "choose none", call: "ModifyCertificates?RemoveCustomerOverride=true", want: []string{"Certificate/CertificateIdentifier=howdah-ca"}},
	{name: "choose another", call: "ModifyCertificates?CertificateIdentifier=x", code: "CertificateNotFound"},
	{name: "choose nothing", call: "ModifyCertificates", code: badMix},
	{name: "choose and do not", call: "ModifyCertificates?CertificateIdentifier=howdah-ca&RemoveCustomerOverride=true", code: badMix},
}

const quota = "AccountQuotas/AccountQuota"

var accountScenarios = []scenario{
	{
		name: "quotas", setup: having(newDB, newReplica, newCluster, newMember, addEndpoint), call: "DescribeAccountAttributes",
		after: func(u *user) {
			a := u.do("DescribeAccountAttributes")
			is := func(name string, used string) {
				u.Helper()
				names := a.result().texts(quota + "/AccountQuotaName")
				at := slices.Index(names, name)
				if at < 0 || a.result().texts(quota + "/Used")[at] != used {
					u.Errorf("%s is not %s: %s", name, used, a.body)
				}
			}
			is("DBInstances", "3")
			is("DBClusters", "1")
			is("AllocatedStorage", "40")
			is("ReadReplicasPerMaster", "1")
			is("CustomEndpointsPerDBCluster", "1")
		},
	},
	{
		name: "source regions", setup: having(newDB), call: "DescribeSourceRegions", want: []string{"SourceRegions/SourceRegion#1", "SourceRegions/SourceRegion/RegionName=us-west-2"},
		after: func(u *user) {
			u.region = "eu-west-1"
			u.do("DescribeSourceRegions").has("SourceRegions/SourceRegion#2", "SourceRegions/SourceRegion/RegionName=us-east-1", "SourceRegions/SourceRegion/Status=available")
			u.do("DescribeSourceRegions?RegionName=us-west-2").has("SourceRegions/SourceRegion#1")
			u.do("DescribeSourceRegions?RegionName=eu-west-1").has("SourceRegions/SourceRegion#0")
		},
	},
	{name: "a source region that is none", call: "DescribeSourceRegions?RegionName=Mars", code: badValue, message: "Mars"},
	{name: "source regions, a filter", call: "DescribeSourceRegions?" + badFilter, code: badValue},
	{
		name: "valid modifications", setup: having(newDB), call: "DescribeValidDBInstanceModifications?DBInstanceIdentifier=db",
		want: []string{
			validOptions + "#5", validOptions + "[1]/StorageType=gp2", validOptions + "[1]/StorageSize/Range[1]/To=20", validOptions + "[1]/StorageSize/Range[2]/From=22",
			validOptions + "[3]/StorageSize/Range#1", validOptions + "[3]/StorageSize/Range/From=100", validOptions + "[3]/ProvisionedIops/Range/To=256000",
			"!" + validOptions + "[1]/ProvisionedIops",
		},
	},
	{name: "valid modifications of a member", setup: having(newCluster, newMember), call: "DescribeValidDBInstanceModifications?DBInstanceIdentifier=aura-1", want: []string{validOptions + "#0"}},
	{name: "valid modifications of nothing", call: "DescribeValidDBInstanceModifications?DBInstanceIdentifier=none", code: "DBInstanceNotFound", message: "none"},
	{
		name: "valid modifications while it is deleted", setup: func(u *user) { having(newDB)(u); u.do(dropDB) },
		call: "DescribeValidDBInstanceModifications?DBInstanceIdentifier=db", code: badState, message: "deleting",
	},
}

const validOptions = "ValidDBInstanceModificationsMessage/Storage/ValidStorageOptions"

// TestSeveralVersions: of each major the newest that any host has, in their order.
func TestSeveralVersions(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	for zone, installed := range map[string]map[int]string{"a": {9: "9.6", 15: "15.9"}, "b": {15: "15.18", 17: "17.2"}, "c": {17: "17.10"}} {
		h := member.Host{Name: "host-" + zone, Zone: zone, Address: "127.0.0.1", CPUs: 2, Memory: 8 << 30, Majors: installed, DiskFree: 7 << 30}
		w.put(state.Put(state.Host(h.Name), h))
	}
	got := u.do(showVersions + "Engine=postgres").result().texts("DBEngineVersions/DBEngineVersion/EngineVersion")
	if !slices.Equal(got, []string{"9.6", "15.18", "17.10"}) {
		t.Error(got)
	}
	u.do(showVersions+"Engine=postgres&DefaultOnly=true").has("DBEngineVersions/DBEngineVersion#1", "DBEngineVersions/DBEngineVersion/EngineVersion=17.10")
	u.do(with(newDB, "EngineVersion=17")).has("DBInstance/EngineVersion=17.10")
	u.do(majors+"Engine=postgres&MajorEngineVersion=9").has("DBMajorEngineVersions/DBMajorEngineVersion#1", "!DBMajorEngineVersions/DBMajorEngineVersion/SupportedEngineLifecycles/SupportedEngineLifecycle")
}

// TestOptionsPageByPage: each once, and all of them.
func TestOptionsPageByPage(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	seen := map[string]bool{}
	pages, marker := 0, ""
	for {
		a := u.do(orderable + "&MaxRecords=60" + marker)
		classes := a.result().texts("OrderableDBInstanceOptions/OrderableDBInstanceOption/DBInstanceClass")
		for i, kind := range a.result().texts("OrderableDBInstanceOptions/OrderableDBInstanceOption/StorageType") {
			if key := classes[i] + " " + kind; seen[key] {
				t.Errorf("%s is there twice", key)
			} else {
				seen[key] = true
			}
		}
		pages++
		if a.text("Marker") == "" {
			break
		}
		marker = "&Marker=" + a.text("Marker")
	}
	want := len(spec.Classes()) * 5
	if len(seen) != want || pages != (want+59)/60 {
		t.Errorf("%d options on %d pages, want %d", len(seen), pages, want)
	}
	u.do(orderable + "&MaxRecords=1000").has("!Marker")
}

// TestOptionsThatFit: where classes must fit into hosts, the others are not offered.
func TestOptionsThatFit(t *testing.T) {
	w := newWorld(t)
	u := w.user(t)
	w.server.looks.Policy.Overcommit = false
	u.do(orderable + "&DBInstanceClass=db.t3.micro").has("OrderableDBInstanceOptions/OrderableDBInstanceOption#5")
	u.do(orderable + "&DBInstanceClass=db.r5.24xlarge").has("OrderableDBInstanceOptions/OrderableDBInstanceOption#0")
}

func TestCertificateIsThatOfTheHome(t *testing.T) {
	w := newWorld(t)
	ca, err := w.server.Home.CA()
	if err != nil {
		t.Fatal(err)
	}
	a := w.user(t).do("DescribeCertificates")
	if got := a.text("Certificates/Certificate/ValidTill"); got != ca.Cert.NotAfter.UTC().Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("valid till %s, and the authority %s", got, ca.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	other, err := certs.New("other")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.server.Home.StoreCA(other); err != nil {
		t.Fatal(err)
	}
	if again := w.user(t).do("DescribeCertificates").text("Certificates/Certificate/Thumbprint"); again == a.text("Certificates/Certificate/Thumbprint") {
		t.Error("another authority has the same thumbprint")
	}
}
