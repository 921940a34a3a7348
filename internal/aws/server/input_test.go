package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/api/sns"
	"howdah/internal/aws/wire"
)

func TestCheckInput(t *testing.T) {
	long := strings.Repeat("é", mostText+1)
	for name, c := range map[string]struct {
		in  any
		why string // what the message says; "" for a good input
	}{
		"nothing":                     {&rds.DescribeDBInstancesMessage{}, ""},
		"as long as it may be":        {&rds.CreateDBInstanceMessage{KmsKeyId: some(long[2:])}, ""},
		"too long":                    {&rds.CreateDBInstanceMessage{KmsKeyId: some(long)}, "parameter KmsKeyId must have at most 4096 characters"},
		"too long in a list":          {&rds.CreateDBInstanceMessage{VpcSecurityGroupIds: []string{"", long}}, "VpcSecurityGroupIds.VpcSecurityGroupId.2"},
		"too long in a structure":     {&rds.ModifyDBInstanceMessage{CloudwatchLogsExportConfiguration: &rds.CloudwatchLogsExportConfiguration{EnableLogTypes: []string{long}}}, "CloudwatchLogsExportConfiguration.EnableLogTypes.member.1"},
		"a value of a parameter":      {&rds.ModifyDBParameterGroupMessage{Parameters: []rds.Parameter{{ParameterValue: &long}}}, ""},
		"too long a value":            {&rds.ModifyDBParameterGroupMessage{Parameters: []rds.Parameter{{ParameterValue: some(strings.Repeat("a", 65536))}}}, "Parameters.Parameter.1.ParameterValue must have at most 65535"},
		"blank, and must be given":    {&rds.DeleteDBInstanceMessage{DBInstanceIdentifier: some(" \t")}, "parameter DBInstanceIdentifier must be provided and must not be blank"},
		"blank, and need not":         {&rds.DescribeDBInstancesMessage{DBInstanceIdentifier: some("")}, ""},
		"blank in a list":             {&rds.DescribeDBInstancesMessage{Filters: []rds.Filter{{Name: some("db-instance-id"), Values: []string{""}}, {Name: some("")}}}, "Filters.Filter.2.Name"},
		"a blank element of a list":   {&rds.CreateDBSubnetGroupMessage{SubnetIds: []string{""}}, ""},
		"times are no structures":     {&rds.DescribeEventsMessage{StartTime: some(time.Now())}, ""},
		"SNS has a word for this one": {&sns.PublishInput{Message: some("")}, ""},
		"a long message":              {&sns.PublishInput{Message: some(strings.Repeat("a", 200_000))}, ""},
	} {
		err := checkInput(c.in)
		var known *wire.Error
		if (err == nil) != (c.why == "") || err != nil && (!errors.As(err, &known) || known.Code != badValue || !strings.Contains(known.Message, c.why)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLongMessages: what is wrong with a long value is said in few words.
func TestLongMessages(t *testing.T) {
	u := newWorld(t).user(t)
	u.try("RebootDBInstance?DBInstanceIdentifier="+strings.Repeat("é", 4000)).is("DBInstanceNotFound", "ééé...")
}
