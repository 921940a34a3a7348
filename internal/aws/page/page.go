// Package page takes one page out of a list, for actions that answer long ones. A page's marker
// is the key after which the next one begins: it stays right when others come and go.
package page

import (
	"encoding/base64"
	"slices"
	"strings"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// The bounds of pages whose action says nothing else, and the size of those whose request does
// not.
const (
	least    = 20
	most     = 100
	standard = 100
)

// Of is a page of a list that is sorted by key, and the marker of the next one, nil for the last.
// Size is the request's, or nil.
func Of[T any](all []T, key func(T) string, size *int32, marker *string) ([]T, *string, error) {
	return UpTo(all, key, size, marker, most)
}

// UpTo is Of for the action whose pages may have more records than those of the others.
func UpTo[T any](all []T, key func(T) string, size *int32, marker *string, limit int) ([]T, *string, error) {
	n, err := sizeOf(size, limit)
	if err != nil {
		return nil, nil, err
	}
	return Sized(all, key, n, marker)
}

func sizeOf(size *int32, limit int) (int, error) {
	n := int(wire.Or(size, standard))
	if n < least || n > limit {
		return 0, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %d for MaxRecords. Must be between %d and %d", n, least, limit)
	}
	return n, nil
}

// OfSome is Of those that match, without asking this of those that are on other pages: there may
// be thousands.
func OfSome[T any](all []T, key func(T) string, matches func(T) bool, size *int32, marker *string) ([]T, *string, error) {
	n, err := sizeOf(size, most)
	if err != nil {
		return nil, nil, err
	}
	after, further, err := start(marker)
	if err != nil {
		return nil, nil, err
	}
	if further {
		first, found := slices.BinarySearchFunc(all, after, func(v T, after string) int { return strings.Compare(key(v), after) })
		if found {
			first++
		}
		all = all[first:]
	}
	chosen := make([]T, 0, min(n, len(all))+1)
	for _, v := range all {
		if matches(v) {
			chosen = append(chosen, v)
		}
		if len(chosen) > n {
			return chosen[:n], wire.Some(Marker(key(chosen[n-1]))), nil
		}
	}
	return chosen, nil, nil
}

// start is the key after which a page begins, unless it is the first one.
func start(marker *string) (after string, further bool, err error) {
	// An empty marker is that of the first page: some clients send it.
	if wire.Or(marker, "") == "" {
		return "", false, nil
	}
	after, err = After(*marker)
	return after, true, err
}

// Sized is Of for a size that is known to be right.
func Sized[T any](all []T, key func(T) string, n int, marker *string) ([]T, *string, error) {
	after, further, err := start(marker)
	if err != nil {
		return nil, nil, err
	}
	if further {
		all = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return key(v) <= after })
	}
	if len(all) <= n {
		return all, nil, nil
	}
	return all[:n], wire.Some(Marker(key(all[n-1]))), nil
}

// salt tells our markers from any other text.
const salt = "howdah:"

// Marker is that of the page after a key.
func Marker(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(salt + key))
}

// After is the key of a marker.
func After(marker string) (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(marker)
	key, ours := strings.CutPrefix(string(text), salt)
	if err != nil || !ours {
		return "", wire.NewError(api.ErrInvalidParameterValue, "Invalid marker: %s. Use the Marker or NextToken of an earlier answer, unchanged.", marker)
	}
	return key, nil
}
