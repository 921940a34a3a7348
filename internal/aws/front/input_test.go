package front

import (
	"errors"
	"strings"
	"testing"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/api/sns"
	"howdah/internal/aws/wire"
)

func TestCheckInput(t *testing.T) {
	long := strings.Repeat("é", mostText+1)
	service := &Service{LongTexts: map[string]int{"ParameterValue": 65535, "Message": 1 << 20}, Blank: []string{"Message"}}
	for name, c := range map[string]struct {
		in  any
		why string // what the message says; "" for a good input
	}{
		"nothing":                      {&rds.DescribeDBInstancesMessage{}, ""},
		"as long as it may be":         {&rds.CreateDBInstanceMessage{KmsKeyId: wire.Some(long[2:])}, ""},
		"too long":                     {&rds.CreateDBInstanceMessage{KmsKeyId: wire.Some(long)}, "parameter KmsKeyId must have at most 4096 characters"},
		"too long in a list":           {&rds.CreateDBInstanceMessage{VpcSecurityGroupIds: []string{"", long}}, "VpcSecurityGroupIds.VpcSecurityGroupId.2"},
		"too long in a structure":      {&rds.ModifyDBInstanceMessage{CloudwatchLogsExportConfiguration: &rds.CloudwatchLogsExportConfiguration{EnableLogTypes: []string{long}}}, "CloudwatchLogsExportConfiguration.EnableLogTypes.member.1"},
		"a value of a parameter":       {&rds.ModifyDBParameterGroupMessage{Parameters: []rds.Parameter{{ParameterValue: &long}}}, ""},
		"too long a value":             {&rds.ModifyDBParameterGroupMessage{Parameters: []rds.Parameter{{ParameterValue: wire.Some(strings.Repeat("a", 65536))}}}, "Parameters.Parameter.1.ParameterValue must have at most 65535"},
		"blank, and must be given":     {&rds.DeleteDBInstanceMessage{DBInstanceIdentifier: wire.Some(" \t")}, "parameter DBInstanceIdentifier must be provided and must not be blank"},
		"blank, and need not":          {&rds.DescribeDBInstancesMessage{DBInstanceIdentifier: wire.Some("")}, ""},
		"blank in a list":              {&rds.DescribeDBInstancesMessage{Filters: []rds.Filter{{Name: wire.Some("db-instance-id"), Values: []string{""}}, {Name: wire.Some("")}}}, "Filters.Filter.2.Name"},
		"a blank element of a list":    {&rds.CreateDBSubnetGroupMessage{SubnetIds: []string{""}}, ""},
		"times are no structures":      {&rds.DescribeEventsMessage{StartTime: wire.Some(time.Now())}, ""},
		"the action has a word for it": {&sns.PublishInput{Message: wire.Some("")}, ""},
		"a long message":               {&sns.PublishInput{Message: wire.Some(strings.Repeat("a", 200_000))}, ""},
	} {
		err := service.checkInput(c.in)
		var known *wire.Error
		if (err == nil) != (c.why == "") || err != nil && (!errors.As(err, &known) || known.Code != api.ErrInvalidParameterValue || !strings.Contains(known.Message, c.why)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
