package slots

import (
	"slices"
	"testing"

	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// Slots of users wait for the standbys that may be promoted, by the names of the slots that Patroni
// makes for these, and for nobody else.
func TestForWhomSlotsWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		own  bool
		sync string
		want []string
	}{
		"alone":       {true, "", nil},
		"nobody yet":  {true, `{"leader":"db-ORDERS.m1","sync_standby":""}`, nil},
		"one":         {true, `{"leader":"db-ORDERS.m1","sync_standby":"db-ORDERS.m2"}`, []string{"db_orders_m2"}},
		"two":         {true, `{"leader":"db-ORDERS.m1","sync_standby":"db-ORDERS.m3,db-ORDERS.m2","quorum":1}`, []string{"db_orders_m2", "db_orders_m3"}},
		"old names":   {false, `{"leader":"m1","sync_standby":"m2"}`, []string{"m2"}},
		"the primary": {true, `{"leader":"db-ORDERS.m2","sync_standby":"db-ORDERS.m1,db-ORDERS.m2"}`, []string{"db_orders_m2"}},
	} {
		sync, err := patroni.ParseSync([]byte(c.sync))
		if err != nil {
			t.Fatal(err)
		}
		got := waitFor(member.Assignment{Scope: "db-ORDERS", Name: "m1", OwnName: c.own}, sync)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q instead of %q", name, got, c.want)
		}
	}
}

// The module gives users slots only where the parameter group does.
func TestSettings(t *testing.T) {
	t.Parallel()
	for logical, want := range map[bool]string{true: "on", false: ""} {
		as := member.Assignment{Cluster: patroni.Cluster{LogicalSlots: logical}}
		if got := Settings(as)["howdah.logical_slots"]; got != want {
			t.Errorf("%v: %q", logical, got)
		}
	}
}
