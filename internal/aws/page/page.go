// Package page returns one page of a list, for actions with long answers. A page's marker is the
// key after which the next page begins. So it stays right while entries come and go.
package page

import (
	"encoding/base64"
	"slices"
	"strings"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// These are the bounds of pages whose action has no others, and the size of a page whose request
// does not say one.
const (
	least    = 20
	most     = 100
	standard = 100
)

// Of returns a page of a list that is sorted by key, and the marker of the next page, or nil for
// the last page. size is the request's, or nil.
func Of[T any](all []T, key func(T) string, size *int32, marker *string) ([]T, *string, error) {
	return UpTo(all, key, size, marker, most)
}

// UpTo is Of for an action whose pages may have more records than others.
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

// OfSome is Of for the entries that match. It does not ask that for entries on other pages, because
// there may be thousands.
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

// start returns the key after which a page begins. further is false for the first page.
func start(marker *string) (after string, further bool, err error) {
	// An empty marker stands for the first page. Some clients send it.
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

// Marker returns the marker of the page after a key.
func Marker(key string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(salt + key))
}

// After returns the key of a marker.
func After(marker string) (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(marker)
	key, ours := strings.CutPrefix(string(text), salt)
	if err != nil || !ours {
		return "", wire.NewError(api.ErrInvalidParameterValue, "Invalid marker: %s. Use the Marker or NextToken of an earlier answer, unchanged.", marker)
	}
	return key, nil
}
