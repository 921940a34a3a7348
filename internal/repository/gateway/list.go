package gateway

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"howdah/internal/repository/store"
)

type locationXML struct {
	XMLName  xml.Name `xml:"LocationConstraint"`
	Xmlns    string   `xml:"xmlns,attr"`
	Location string   `xml:",chardata"`
}

// location answers which region a repository is in: whatever the client believes.
func (c *call) location() error {
	if err := c.only("location"); err != nil {
		return err
	}
	if !c.knows(c.holder, c.repository) {
		return errDenied
	}
	answerXML(c.w, http.StatusOK, locationXML{Xmlns: xmlNamespace, Location: c.claim.scope.Region})
	return nil
}

// headBucket answers whether a repository is there.
func (c *call) headBucket() error {
	if err := c.only(); err != nil {
		return err
	}
	if !c.knows(c.holder, c.repository) {
		return errDenied
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

type listXML struct {
	XMLName        xml.Name `xml:"ListBucketResult"`
	Xmlns          string   `xml:"xmlns,attr"`
	Name           string
	Prefix         string
	Delimiter      string  `xml:",omitempty"`
	EncodingType   string  `xml:",omitempty"`
	StartAfter     string  `xml:",omitempty"`
	Marker         *string `xml:",omitempty"`
	MaxKeys        int
	KeyCount       *int   `xml:",omitempty"`
	Token          string `xml:"ContinuationToken,omitempty"`
	NextToken      string `xml:"NextContinuationToken,omitempty"`
	NextMarker     string `xml:",omitempty"`
	IsTruncated    bool
	Contents       []contentXML
	CommonPrefixes []prefixXML
}

type contentXML struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
}

type prefixXML struct{ Prefix string }

// listing is what a request for a list asks for.
type listing struct {
	store.Query
	second  bool // of the second version of the action
	encoded bool // keys are to be encoded as in URLs
}

// parseListing reads the parameters of both versions of the action.
func parseListing(q url.Values) (listing, error) {
	l := listing{second: q.Get("list-type") == "2", encoded: q.Get("encoding-type") == "url"}
	l.Prefix, l.Max = q.Get("prefix"), store.MaxList
	switch {
	case q.Has("list-type") && !l.second:
		return listing{}, malformed("list-type can only be 2.")
	case q.Get("encoding-type") != "" && !l.encoded:
		return listing{}, malformed("encoding-type can only be url.")
	case q.Get("delimiter") != "" && q.Get("delimiter") != "/":
		return listing{}, notDone("a delimiter other than /")
	}
	l.Fold = q.Get("delimiter") == "/"
	if text := q.Get("max-keys"); text != "" {
		most, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return listing{}, malformed("max-keys must be a number.")
		}
		l.Max = min(int(most), store.MaxList)
	}
	l.After = q.Get("marker")
	if l.second {
		l.After = q.Get("start-after")
		if token := q.Get("continuation-token"); token != "" {
			after, err := base64.RawURLEncoding.DecodeString(token)
			if err != nil {
				return listing{}, malformed("The continuation token is none of the gateway's.")
			}
			l.After = string(after)
		}
	}
	return l, nil
}

// list answers with the objects that begin with a prefix.
func (c *call) list() error {
	if err := c.only("list-type", "prefix", "delimiter", "max-keys", "start-after", "continuation-token", "marker", "encoding-type", "fetch-owner"); err != nil {
		return err
	}
	l, err := parseListing(c.query)
	if err != nil {
		return err
	}
	s, _, err := c.allow(c.holder, c.repository, l.Prefix, false)
	if err != nil {
		return err
	}
	var page store.Page
	if l.Max > 0 {
		page, err = s.List(c.r.Context(), l.Query)
		if err := c.done(err); err != nil {
			return err
		}
	}
	answerXML(c.w, http.StatusOK, c.listed(l, page))
	return nil
}

// listed returns the answer.
func (c *call) listed(l listing, page store.Page) listXML {
	key := func(text string) string {
		if l.encoded {
			return strings.ReplaceAll(url.QueryEscape(text), "%2F", "/")
		}
		return text
	}
	answer := listXML{
		Xmlns: xmlNamespace, Name: c.repository, Prefix: key(l.Prefix), Delimiter: c.query.Get("delimiter"), MaxKeys: l.Max, IsTruncated: page.Next != "",
		EncodingType: c.query.Get("encoding-type"),
	}
	for _, o := range page.Objects {
		answer.Contents = append(answer.Contents, contentXML{
			Key: key(o.Key), LastModified: o.Modified.UTC().Format("2006-01-02T15:04:05.000Z"), ETag: `"` + o.ETag + `"`, Size: o.Size, StorageClass: "STANDARD",
		})
	}
	for _, p := range page.Prefixes {
		answer.CommonPrefixes = append(answer.CommonPrefixes, prefixXML{key(p)})
	}
	if !l.second {
		marker := key(l.After)
		answer.Marker, answer.NextMarker = &marker, key(page.Next)
		return answer
	}
	count := len(page.Objects) + len(page.Prefixes)
	answer.KeyCount, answer.StartAfter, answer.Token = &count, key(c.query.Get("start-after")), c.query.Get("continuation-token")
	if page.Next != "" {
		answer.NextToken = base64.RawURLEncoding.EncodeToString([]byte(page.Next))
	}
	return answer
}
