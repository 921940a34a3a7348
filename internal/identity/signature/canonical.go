package signature

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Canonical returns the text that both sides hash: method, path, query, the signed headers and the
// hash of the body. Services encode paths in different ways. signed must be lower-case and sorted.
func Canonical(r *http.Request, path, query string, signed []string, bodyHash string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + path + "\n" + query + "\n")
	for _, name := range signed {
		values, _ := HeaderValues(r, name)
		for i, value := range values {
			values[i] = collapse(value)
		}
		b.WriteString(name + ":" + strings.Join(values, ",") + "\n")
	}
	b.WriteString("\n" + strings.Join(signed, ";") + "\n" + bodyHash)
	return b.String()
}

// Query returns a raw query string with its parameters decoded, encoded
// in the one form that is signed, and sorted; the parameter skip is left out. It
// returns false if an escape is malformed.
func Query(raw, skip string) (string, bool) {
	type pair struct{ name, value string }
	var pairs []pair
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		rawName, rawValue, _ := strings.Cut(part, "=")
		name, err := url.QueryUnescape(rawName)
		value, valueErr := url.QueryUnescape(rawValue)
		if err != nil || valueErr != nil {
			return "", false
		}
		if name != skip {
			pairs = append(pairs, pair{Encode(name, false), Encode(value, false)})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		if order := strings.Compare(a.name, b.name); order != 0 {
			return order
		}
		return strings.Compare(a.value, b.value)
	})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p.name + "=" + p.value)
	}
	return b.String(), true
}

// Encode writes all but the unreserved characters of RFC 3986 as %XX; it may
// keep slashes.
func Encode(s string, keepSlash bool) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if unreserved(c) || keepSlash && c == '/' {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
	}
	return b.String()
}

func unreserved(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0
}

// HeaderValues returns a copy of the values of the header with that lower-case
// name, and whether the request has it. net/http keeps two of them elsewhere.
func HeaderValues(r *http.Request, name string) ([]string, bool) {
	switch name {
	case "host":
		host := r.Host
		if host == "" {
			host = r.URL.Host
		}
		return []string{host}, true
	case "content-length":
		return []string{strconv.FormatInt(r.ContentLength, 10)}, r.ContentLength >= 0
	}
	values, ok := r.Header[http.CanonicalHeaderKey(name)]
	return slices.Clone(values), ok
}

// collapse trims a header's value and makes every run of spaces one.
func collapse(value string) string {
	value = strings.Trim(value, " ")
	for strings.Contains(value, "  ") {
		value = strings.ReplaceAll(value, "  ", " ")
	}
	return value
}
