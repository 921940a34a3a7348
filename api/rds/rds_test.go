package rds_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"howdah/api"
	"howdah/api/rds"
)

// The figures are those of the RDS model in botocore 1.44.5.
func TestServiceIsComplete(t *testing.T) {
	s := &rds.Service
	if len(s.Actions) != 168 {
		t.Errorf("%d actions", len(s.Actions))
	}
	if !slices.IsSortedFunc(s.Actions, func(a, b api.Action) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the actions are not sorted: none can be found")
	}
	statuses := map[int]int{}
	for _, status := range s.Errors {
		statuses[status]++
	}
	if diff := cmp.Diff(map[int]int{400: 105, 404: 42, 403: 3}, statuses); diff != "" {
		t.Errorf("errors by status (-want +got):\n%s", diff)
	}
	void := 0
	for _, a := range s.Actions {
		if (a.Output == nil) != (a.Wrapper == "") {
			t.Errorf("%s has an output or a wrapper, not both", a.Name)
		}
		if a.Output == nil {
			void++
		}
		for _, code := range a.Errors {
			if s.Errors[code] == 0 {
				t.Errorf("%s answers %s, which has no status", a.Name, code)
			}
		}
	}
	if void != 11 {
		t.Errorf("%d void actions", void)
	}
}

// Codes that differ from what their shapes' names suggest.
func TestErrorCodes(t *testing.T) {
	tests := []struct {
		constant, code string
		status         int
	}{
		{rds.ErrDBInstanceNotFound, "DBInstanceNotFound", 404},
		{rds.ErrDBClusterNotFound, "DBClusterNotFoundFault", 404},
		{rds.ErrDBSnapshotNotFound, "DBSnapshotNotFound", 404},
		{rds.ErrDBClusterSnapshotNotFound, "DBClusterSnapshotNotFoundFault", 404},
		{rds.ErrDBParameterGroupNotFound, "DBParameterGroupNotFound", 404},
		{rds.ErrDBClusterParameterGroupNotFound, "DBClusterParameterGroupNotFound", 404},
		{rds.ErrDBSubnetGroupNotFound, "DBSubnetGroupNotFoundFault", 404},
		{rds.ErrDBSubnetGroupAlreadyExists, "DBSubnetGroupAlreadyExists", 400},
		{rds.ErrInvalidDBInstanceState, "InvalidDBInstanceState", 400},
		{rds.ErrInvalidDBClusterState, "InvalidDBClusterStateFault", 400},
		{rds.ErrSubscriptionAlreadyExist, "SubscriptionAlreadyExist", 400},
		{rds.ErrDBClusterEndpointNotFound, "DBClusterEndpointNotFoundFault", 400},
		{rds.ErrDBClusterQuotaExceeded, "DBClusterQuotaExceededFault", 403},
		{rds.ErrDBClusterEndpointQuotaExceeded, "DBClusterEndpointQuotaExceededFault", 403},
		{rds.ErrInsufficientDBClusterCapacity, "InsufficientDBClusterCapacityFault", 403},
		{rds.ErrReservedDBInstanceAlreadyExists, "ReservedDBInstanceAlreadyExists", 404},
		{rds.ErrDBSecurityGroupQuotaExceeded, "QuotaExceeded.DBSecurityGroup", 400},
	}
	for _, tt := range tests {
		if tt.constant != tt.code || rds.Service.Errors[tt.code] != tt.status {
			t.Errorf("got %s with %d, want %s with %d", tt.constant, rds.Service.Errors[tt.constant], tt.code, tt.status)
		}
	}
}

// List elements whose names no rule gives.
func TestListElements(t *testing.T) {
	tests := []struct {
		structure     any
		field, member string
	}{
		{rds.CreateDBSubnetGroupMessage{}, "SubnetIds", "SubnetIdentifier"},
		{rds.CreateDBInstanceMessage{}, "TagSpecifications", "item"},
		{rds.CreateDBInstanceMessage{}, "DBSecurityGroups", "DBSecurityGroupName"},
		{rds.CreateDBInstanceMessage{}, "EnableCloudwatchLogsExports", "member"},
		{rds.RemoveTagsFromResourceMessage{}, "TagKeys", "member"},
		{rds.Filter{}, "Values", "Value"},
		{rds.DBClusterEndpointMessage{}, "DBClusterEndpoints", "DBClusterEndpointList"},
		{rds.DescribeDBProxiesResponse{}, "DBProxies", "member"},
		{rds.ModifyDBSnapshotAttributeMessage{}, "ValuesToAdd", "AttributeValue"},
	}
	for _, tt := range tests {
		field, _ := reflect.TypeOf(tt.structure).FieldByName(tt.field)
		if member, ok := api.MemberOf(field); !ok || member.Element != tt.member {
			t.Errorf("%T.%s has the elements %q, not %q", tt.structure, tt.field, member.Element, tt.member)
		}
	}
}

// Every limit that a tag names must exist, or it would silently not limit.
func TestChecksExist(t *testing.T) {
	used := map[string]bool{}
	for typ := range reachable() {
		for field := range typ.Fields() {
			member, _ := api.MemberOf(field)
			for _, name := range []string{member.Check, member.Each} {
				used[name] = true
				if name != "" && reflect.DeepEqual(rds.Service.Checks[name], api.Check{}) {
					t.Errorf("%s.%s has the check %s, which limits nothing", typ, field.Name, name)
				}
			}
		}
	}
	for name := range rds.Service.Checks {
		if !used[name] {
			t.Errorf("no member has the check %s", name)
		}
	}
}

// reachable returns the structures of all inputs and outputs.
func reachable() map[reflect.Type]bool {
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() || seen[typ] {
			return
		}
		seen[typ] = true
		for field := range typ.Fields() {
			visit(field.Type)
		}
	}
	for _, a := range rds.Service.Actions {
		visit(reflect.TypeOf(a.Input()))
		if a.Output != nil {
			visit(reflect.TypeOf(a.Output()))
		}
	}
	return seen
}

// The figure is that of the model: 593 structures but for the 150 errors.
func TestStructuresAreComplete(t *testing.T) {
	if n := len(reachable()); n != 593-150 {
		t.Errorf("%d structures", n)
	}
}
