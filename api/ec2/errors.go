package ec2

import "net/http"

// The codes of the errors that the actions answer. The service's model has none of
// them: they are those of the EC2 API reference, "Error codes".
const (
	ErrAuthFailure                       = "AuthFailure"
	ErrCannotDelete                      = "CannotDelete"
	ErrDependencyViolation               = "DependencyViolation"
	ErrDryRunOperation                   = "DryRunOperation"
	ErrInvalidGroupDuplicate             = "InvalidGroup.Duplicate"
	ErrInvalidGroupNotFound              = "InvalidGroup.NotFound"
	ErrInvalidGroupReserved              = "InvalidGroup.Reserved"
	ErrInvalidGroupIDMalformed           = "InvalidGroupId.Malformed"
	ErrInvalidPermissionDuplicate        = "InvalidPermission.Duplicate"
	ErrInvalidPermissionNotFound         = "InvalidPermission.NotFound"
	ErrInvalidSecurityGroupRuleID        = "InvalidSecurityGroupRuleId.NotFound"
	ErrInvalidSecurityGroupRuleMalformed = "InvalidSecurityGroupRuleId.Malformed"
	ErrInvalidSubnetIDNotFound           = "InvalidSubnetID.NotFound"
	ErrInvalidVpcIDNotFound              = "InvalidVpcID.NotFound"
	ErrRulesPerSecurityGroupLimit        = "RulesPerSecurityGroupLimitExceeded"
	ErrSecurityGroupLimit                = "SecurityGroupLimitExceeded"
	ErrUnauthorizedOperation             = "UnauthorizedOperation"
	ErrUnsupportedOperation              = "UnsupportedOperation"
)

var statuses = map[string]int{
	ErrAuthFailure:                       http.StatusUnauthorized,
	ErrCannotDelete:                      http.StatusBadRequest,
	ErrDependencyViolation:               http.StatusBadRequest,
	ErrDryRunOperation:                   http.StatusPreconditionFailed,
	ErrInvalidGroupDuplicate:             http.StatusBadRequest,
	ErrInvalidGroupNotFound:              http.StatusBadRequest,
	ErrInvalidGroupReserved:              http.StatusBadRequest,
	ErrInvalidGroupIDMalformed:           http.StatusBadRequest,
	ErrInvalidPermissionDuplicate:        http.StatusBadRequest,
	ErrInvalidPermissionNotFound:         http.StatusBadRequest,
	ErrInvalidSecurityGroupRuleID:        http.StatusBadRequest,
	ErrInvalidSecurityGroupRuleMalformed: http.StatusBadRequest,
	ErrInvalidSubnetIDNotFound:           http.StatusBadRequest,
	ErrInvalidVpcIDNotFound:              http.StatusBadRequest,
	ErrRulesPerSecurityGroupLimit:        http.StatusBadRequest,
	ErrSecurityGroupLimit:                http.StatusBadRequest,
	ErrUnauthorizedOperation:             http.StatusForbidden,
	ErrUnsupportedOperation:              http.StatusBadRequest,
}
