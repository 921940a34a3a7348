package fault

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit/pgversion"
)

// A setting that needs a restart is given, and the reboot is asked for right after. The server
// comes back with the setting, although Patroni reads what all members share in its own time.
func TestARebootBringsNewSettings(t *testing.T) {
	s := begin(t, nil)
	s.given("orders", true)
	group, family := "orders", fmt.Sprintf("postgres%d", pgversion.Major())
	s.must(s.rig.Call(s.Context(), "CreateDBParameterGroup", &rds.CreateDBParameterGroupMessage{
		DBParameterGroupName: &group, DBParameterGroupFamily: &family, Description: new("of a story"),
	}, &rds.CreateDBParameterGroupResult{}), "make a parameter group")
	s.must(s.rig.Call(s.Context(), "ModifyDBInstance", &rds.ModifyDBInstanceMessage{
		DBInstanceIdentifier: new("orders"), DBParameterGroupName: &group, ApplyImmediately: new(true),
	}, &rds.ModifyDBInstanceResult{}), "assign it")
	s.must(s.rig.WaitStatus(s.Context(), "orders", "available", 30*time.Second), "wait for orders")
	for _, want := range []int{75, 110, 80} {
		value := []rds.Parameter{{ParameterName: new("max_connections"), ParameterValue: new(strconv.Itoa(want)), ApplyMethod: new("pending-reboot")}}
		s.must(s.rig.Call(s.Context(), "ModifyDBParameterGroup", &rds.ModifyDBParameterGroupMessage{DBParameterGroupName: &group, Parameters: value},
			&rds.DBParameterGroupNameMessage{}), "set max_connections")
		s.must(s.rig.Call(s.Context(), "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new("orders")}, &rds.RebootDBInstanceResult{}), "reboot")
		s.must(s.rig.WaitStatus(s.Context(), "orders", "available", time.Minute), "wait for orders")
		s.eventually(15*time.Second, func() error {
			got, err := s.query("orders", "SELECT setting FROM pg_settings WHERE name = 'max_connections'")
			if err == nil && got != strconv.Itoa(want) {
				err = fmt.Errorf("max_connections is %s, want %d", got, want)
			}
			return err
		})
	}
}
