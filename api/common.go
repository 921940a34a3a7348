package api

import "net/http"

// The codes that any action may answer and that the service models leave out.
// Codes and statuses are those of the RDS API reference, "Common Errors", but
// for Throttled, which is SNS's, and the last three, which the reference leaves to
// the HTTP front end.
const (
	ErrAccessDenied                = "AccessDenied"
	ErrAccessDeniedException       = "AccessDeniedException"
	ErrIncompleteSignature         = "IncompleteSignature"
	ErrInternalFailure             = "InternalFailure"
	ErrInvalidAction               = "InvalidAction"
	ErrInvalidClientTokenID        = "InvalidClientTokenId"
	ErrInvalidParameterCombination = "InvalidParameterCombination"
	ErrInvalidParameterValue       = "InvalidParameterValue"
	ErrInvalidQueryParameter       = "InvalidQueryParameter"
	ErrMalformedQueryString        = "MalformedQueryString"
	ErrMissingAction               = "MissingAction"
	ErrMissingAuthenticationToken  = "MissingAuthenticationToken"
	ErrMissingParameter            = "MissingParameter"
	ErrOptInRequired               = "OptInRequired"
	ErrRequestExpired              = "RequestExpired"
	ErrServiceUnavailable          = "ServiceUnavailable"
	ErrSignatureDoesNotMatch       = "SignatureDoesNotMatch"
	ErrThrottled                   = "Throttled"
	ErrThrottlingException         = "ThrottlingException"
	ErrValidationError             = "ValidationError"

	ErrMethodNotAllowed      = "MethodNotAllowed"
	ErrRequestEntityTooLarge = "RequestEntityTooLarge"
	ErrUnsupportedMediaType  = "UnsupportedMediaType"
)

// CommonErrors maps the common codes to their HTTP statuses.
var CommonErrors = map[string]int{
	ErrAccessDenied:                http.StatusForbidden,
	ErrAccessDeniedException:       http.StatusBadRequest,
	ErrIncompleteSignature:         http.StatusBadRequest,
	ErrInternalFailure:             http.StatusInternalServerError,
	ErrInvalidAction:               http.StatusBadRequest,
	ErrInvalidClientTokenID:        http.StatusForbidden,
	ErrInvalidParameterCombination: http.StatusBadRequest,
	ErrInvalidParameterValue:       http.StatusBadRequest,
	ErrInvalidQueryParameter:       http.StatusBadRequest,
	ErrMalformedQueryString:        http.StatusNotFound,
	ErrMissingAction:               http.StatusBadRequest,
	ErrMissingAuthenticationToken:  http.StatusForbidden,
	ErrMissingParameter:            http.StatusBadRequest,
	ErrOptInRequired:               http.StatusForbidden,
	ErrRequestExpired:              http.StatusBadRequest,
	ErrServiceUnavailable:          http.StatusServiceUnavailable,
	ErrSignatureDoesNotMatch:       http.StatusForbidden,
	ErrThrottled:                   http.StatusTooManyRequests,
	ErrThrottlingException:         http.StatusBadRequest,
	ErrValidationError:             http.StatusBadRequest,
	ErrMethodNotAllowed:            http.StatusMethodNotAllowed,
	ErrRequestEntityTooLarge:       http.StatusRequestEntityTooLarge,
	ErrUnsupportedMediaType:        http.StatusUnsupportedMediaType,
}
