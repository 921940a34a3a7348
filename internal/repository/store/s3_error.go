package store

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// errUnexpected is the kind of what has none.
var errUnexpected = errors.New("the S3 server answered with an error")

// codes says what codes of S3 mean. Servers that keep objects in files have some of their own.
var codes = map[string]error{
	"NoSuchKey": ErrNotFound, "NotFound": ErrNotFound, "NoSuchUpload": ErrNotFound,
	"QuotaExceeded": ErrFull, "XMinioStorageFull": ErrFull, "XAdminBucketQuotaExceeded": ErrFull, "ServiceQuotaExceeded": ErrFull,
	"InsufficientStorage": ErrFull, "EntityTooLarge": ErrFull,
	"AccessDenied": ErrReadOnly, "MethodNotAllowed": ErrReadOnly, "AllAccessDisabled": ErrReadOnly,
	"ObjectLocked": ErrReadOnly, "InvalidObjectState": ErrReadOnly,
	"KeyTooLongError": ErrName, "ObjectParentIsFile": ErrName, "ExistingObjectIsDirectory": ErrName, "XMinioInvalidObjectName": ErrName,
	"InvalidPart": ErrPart, "InvalidPartOrder": ErrPart, "EntityTooSmall": ErrPart,
	"NoSuchBucket": ErrAway, "SlowDown": ErrAway, "ServiceUnavailable": ErrAway, "InternalError": ErrAway, "RequestTimeout": ErrAway,
	"RequestTimeTooSkewed": ErrAway, "InvalidAccessKeyId": ErrAway, "SignatureDoesNotMatch": ErrAway, "ExpiredToken": ErrAway,
}

// kindOfCode returns what a code means, or else a status.
func kindOfCode(code string, status int) error {
	switch {
	case codes[code] != nil:
		return codes[code]
	case status == http.StatusNotFound:
		return ErrNotFound
	case status == http.StatusForbidden:
		return ErrReadOnly
	case status == http.StatusInsufficientStorage:
		return ErrFull
	case status >= http.StatusInternalServerError:
		return ErrAway
	}
	return errUnexpected
}

// codeOf returns the code of S3's error, or "".
func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// kind returns the error with its kind, for who writes. A server that did not answer is away.
func (s *S3) kind(doing, key string, err error) error {
	kind := ErrAway
	status := 0
	if response, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		status = response.HTTPStatusCode()
	}
	if code := codeOf(err); code != "" || status != 0 {
		kind = kindOfCode(code, status)
	}
	if errors.Is(err, context.Canceled) {
		kind = context.Canceled
	}
	return fmt.Errorf("%s %.80q in the bucket %s: %w: %w", doing, key, s.bucket, kind, err)
}

// readKind is kind for who reads: who may not read is let in no more.
func (s *S3) readKind(doing, key string, err error) error {
	err = s.kind(doing, key, err)
	if errors.Is(err, ErrReadOnly) {
		return fmt.Errorf("%w: %w", ErrAway, err)
	}
	return err
}
