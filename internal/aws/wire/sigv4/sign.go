package sigv4

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"howdah/internal/identity/signature"
)

// Sign adds the headers X-Amz-Date, Authorization and, where the credentials
// have one, X-Amz-Security-Token. It signs Host, Content-Type and all X-Amz-*
// headers, so set those before. body is what the request will send. Signing again
// replaces the signature.
func Sign(req *http.Request, body []byte, creds Credentials, region, service string, now time.Time) {
	now = now.UTC()
	req.Header.Del("Authorization")
	req.Header.Set("X-Amz-Date", now.Format(timeLayout))
	if creds.SessionToken != "" {
		req.Header.Set("X-Amz-Security-Token", creds.SessionToken)
	}
	s := scope{Date: now.Format(dateLayout), Region: region, Service: service}
	signed := headersToSign(req.Header)
	query, _ := signature.Query(req.URL.RawQuery, "")
	canonical := signature.Canonical(req, canonicalPath(req.URL), query, signed, signature.Hash(body))
	req.Header.Set("Authorization", algorithm+
		" Credential="+creds.AccessKeyID+"/"+s.String()+
		", SignedHeaders="+strings.Join(signed, ";")+
		", Signature="+s.Signature(creds.SecretAccessKey, now, canonical))
}

// Presign makes the request's URL one that anybody may use for that long; the
// request has no body and signs no header but Host. expires counts in whole
// seconds, from 1 to MaxExpires: Verify refuses others.
func Presign(req *http.Request, creds Credentials, region, service string, now time.Time, expires time.Duration) {
	now = now.UTC()
	s := scope{Date: now.Format(dateLayout), Region: region, Service: service}
	added := url.Values{
		"X-Amz-Algorithm":     {algorithm},
		"X-Amz-Credential":    {creds.AccessKeyID + "/" + s.String()},
		"X-Amz-Date":          {now.Format(timeLayout)},
		"X-Amz-Expires":       {strconv.Itoa(int(expires / time.Second))},
		"X-Amz-SignedHeaders": {"host"},
	}
	if creds.SessionToken != "" {
		added.Set("X-Amz-Security-Token", creds.SessionToken)
	}
	query, _ := signature.Query(req.URL.RawQuery+"&"+added.Encode(), "")
	canonical := signature.Canonical(req, canonicalPath(req.URL), query, []string{"host"}, signature.Hash(nil))
	req.URL.RawQuery = query + "&X-Amz-Signature=" + s.Signature(creds.SecretAccessKey, now, canonical)
}

func headersToSign(header http.Header) []string {
	signed := []string{"host"}
	for name := range header {
		lower := strings.ToLower(name)
		if lower == "content-type" || strings.HasPrefix(lower, "x-amz-") {
			signed = append(signed, lower)
		}
	}
	slices.Sort(signed)
	return signed
}
