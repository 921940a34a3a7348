package rds

import (
	"fmt"
	"strings"

	"howdah/api/rds"
	"howdah/internal/aws/rds/catalogue"
)

// notes say what users have to know of an action that differs from RDS's.
var notes = map[string]string{
	"CopyDBClusterSnapshot":                      "in the region: another record of the same backup; to another region: a copy of the files in the home's repository for copies",
	"CopyDBSnapshot":                             "in the region: another record of the same backup; to another region: a copy of the files in the home's repository for copies",
	"ModifyDBSnapshot":                           "the option group; a restored instance has the newest minor version anyway",
	"AddRoleToDBCluster":                         "s3Import and s3Export, with a role that leads to a bucket; see [S3](s3.md)",
	"AddRoleToDBInstance":                        "s3Import and s3Export, with a role that leads to a bucket; see [S3](s3.md)",
	"CopyOptionGroup":                            "kept and shown: PostgreSQL has no options",
	"CreateDBCluster":                            "Aurora PostgreSQL, and Multi-AZ DB clusters; see [clusters](replicas-and-clusters.md)",
	"CreateDBInstance":                           "see [instances](instances.md)",
	"CreateDBInstanceReadReplica":                "of an instance, a replica or a cluster; see [replicas](replicas-and-clusters.md)",
	"CreateDBSubnetGroup":                        "decides in which zones databases are; see [groups](groups.md)",
	"CreateOptionGroup":                          "kept and shown: PostgreSQL has no options",
	"DescribeAccountAttributes":                  "the quotas that hold here, with what is used of them",
	"DescribeCertificates":                       "the authorities of the home; see [certificates](certificates.md)",
	"DescribeDBEngineVersions":                   "what is installed on the hosts",
	"DescribeDBMajorEngineVersions":              "with the time in which the PostgreSQL project mends them",
	"DescribeEvents":                             "kept for 14 days",
	"DescribeOptionGroupOptions":                 "an empty list: PostgreSQL has none",
	"DescribeOrderableDBInstanceOptions":         "installed versions; with --no-overcommit only classes that some host is large enough for",
	"DescribeServerlessV2PlatformVersions":       "an empty list: serverless capacity is not available",
	"DescribeSourceRegions":                      "the regions in which the account has instances, and the home's",
	"RestoreDBClusterFromSnapshot":               "of a cluster, or of an instance (by its ARN); the first instance of the cluster gets the data",
	"RestoreDBClusterToPointInTime":              "RestoreType copy-on-write makes a clone; of an Aurora cluster when its first instance is created",
	"StartDBInstanceAutomatedBackupsReplication": "into the home's repository for copies",
	"FailoverDBCluster":                          "see [availability](availability.md)",
	"ModifyCertificates":                         "the authority that new databases get; see [certificates](certificates.md)",
	"ModifyOptionGroup":                          "there are no options to add",
	"RebootDBCluster":                            "of Multi-AZ DB clusters",
}

// What Howdah does about an action.
const (
	does       = "yes"
	doesEmpty  = "an empty list"
	doesNot    = "no"
	doesNotYet = "not yet"
)

// coverage is what Howdah does about an action of RDS, and what there is to say.
func coverage(name string) (word, note string) {
	if _, ok := Nobodys().actions()[name]; ok {
		return does, notes[name]
	}
	if _, ok := catalogue.Nothing(catalogue.Config{})[name]; ok {
		return doesEmpty, catalogue.Skipped[name]
	}
	if why, ok := catalogue.Skipped[name]; ok {
		return doesNot, why
	}
	return doesNotYet, ""
}

const referenceIntro = `# Actions of the API

Written by ` + "`howdah gen-api`" + ` from the table of actions and the model of RDS: do not edit.

The second column of the table below has one of four entries for each action of RDS:

- **%s**: Howdah does it.
- **%s**: the answer lists nothing. That is true, as Howdah has nothing of the kind.
- **%s** and **%s**: the answer is the error ` + "`InvalidAction`" + `, with a message that says why.

If an action is there and one of its parameters would have no effect, the call is refused, and the
message names the parameter.

| | actions |
| --- | --- |
%s
Howdah also speaks parts of other services:

- of STS, GetCallerIdentity;
- of SNS, what [notifications](notifications.md) need;
- of EC2, what decides [who may connect](networks.md);
- of Secrets Manager, what [managed passwords](secrets.md) need;
- of KMS, what [encryption](encryption.md) needs.

| action | does Howdah do it? | |
| --- | --- | --- |
`

// Reference is docs/guide/api.md.
func Reference() string {
	count := map[string]int{}
	var table strings.Builder
	for _, a := range rds.Service.Actions {
		word, note := coverage(a.Name)
		count[word]++
		fmt.Fprintf(&table, "| %s | %s | %s |\n", a.Name, word, note)
	}
	var sums strings.Builder
	for _, word := range []string{does, doesEmpty, doesNot, doesNotYet} {
		fmt.Fprintf(&sums, "| %s | %d |\n", word, count[word])
	}
	fmt.Fprintf(&sums, "| of RDS | %d |\n", len(rds.Service.Actions))
	return fmt.Sprintf(referenceIntro, does, doesEmpty, doesNot, doesNotYet, sums.String()) + table.String()
}
