package gateway

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"time"

	"howdah/internal/repository/store"
)

// maxPartsBody is the length of the longest list of parts, in bytes.
const maxPartsBody = 3 << 20

// uploadKey names an upload. Ids of one repository are not those of another.
type uploadKey struct{ repository, key, id string }

// upload is what the gateway remembers of an upload. It may have forgotten, or have been restarted:
// an upload goes on without this.
type upload struct {
	holder *holder
	begun  time.Time
	// object is what became of it. A client that did not hear so asks again.
	object *store.Object
}

// forgetUploads forgets what began before that time.
func (g *Gateway) forgetUploads(before time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, u := range g.uploads {
		if u.begun.Before(before) {
			g.endUpload(key, nil)
		}
	}
}

// endUpload counts an upload no more; mu is held. It keeps what became of it, if anything did.
func (g *Gateway) endUpload(key uploadKey, object *store.Object) {
	u := g.uploads[key]
	if u == nil {
		return
	}
	if u.object == nil {
		u.holder.uploads--
	}
	u.object = object
	if object == nil || len(g.uploads) > maxRemembered {
		delete(g.uploads, key)
	}
}

// maxRemembered is how many uploads the gateway remembers at most that have ended.
const maxRemembered = 4096

type beganXML struct {
	XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
	Xmlns    string   `xml:"xmlns,attr"`
	Bucket   string
	Key      string
	UploadID string `xml:"UploadId"`
}

// uploadStore returns the store for a request about an upload.
func (c *call) uploadStore(names ...string) (s store.Store, database string, err error) {
	c.upload = true
	if err := c.only(names...); err != nil {
		return nil, "", err
	}
	if err := c.plain(); err != nil {
		return nil, "", err
	}
	return c.allow(c.holder, c.repository, c.key, true)
}

func (c *call) beginUpload() error {
	s, _, err := c.uploadStore("uploads")
	if err != nil {
		return err
	}
	if !c.reserve() {
		return errManyUploads
	}
	id, err := s.Begin(c.r.Context(), c.key)
	c.mu.Lock()
	if err != nil {
		c.holder.uploads--
	} else {
		c.uploads[uploadKey{c.repository, c.key, id}] = &upload{holder: c.holder, begun: c.config.Now()}
	}
	c.mu.Unlock()
	if err := c.done(err); err != nil {
		return err
	}
	answerXML(c.w, http.StatusOK, beganXML{Xmlns: xmlNamespace, Bucket: c.repository, Key: c.key, UploadID: id})
	return nil
}

// reserve counts an upload that is to begin, and returns false if there are too many.
func (c *call) reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holder.uploads >= c.config.UploadsPerKey {
		return false
	}
	c.holder.uploads++
	return true
}

// part stores a part of an upload.
func (c *call) part() error {
	s, _, err := c.uploadStore("uploadId", "partNumber")
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(c.query.Get("partNumber"), 10, 31)
	if err != nil || number < 1 || number > store.MaxParts {
		return malformed("partNumber must be from 1 to %d.", store.MaxParts)
	}
	b, err := c.body(c.config.MaxObject)
	if err != nil {
		return err
	}
	release, ok := c.take(c.holder, false)
	if !ok {
		return errBusy
	}
	defer release()
	part, err := s.Part(c.r.Context(), c.key, c.query.Get("uploadId"), int(number), store.Body{Reader: b, Length: b.length})
	c.read()
	if err := c.done(err); err != nil {
		return err
	}
	c.w.Header().Set("Etag", `"`+part.ETag+`"`)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

type completedXML struct {
	XMLName  xml.Name `xml:"CompleteMultipartUploadResult"`
	Xmlns    string   `xml:"xmlns,attr"`
	Location string
	Bucket   string
	Key      string
	ETag     string
}

// parseParts returns the parts of which an object is to be made.
func parseParts(text []byte) ([]store.Part, error) {
	var request struct {
		XMLName xml.Name
		Part    []struct {
			PartNumber int
			ETag       string
		}
	}
	if err := decodeXML(text, &request, "CompleteMultipartUpload", store.MaxParts); err != nil {
		return nil, err
	}
	parts := make([]store.Part, len(request.Part))
	for i, p := range request.Part {
		parts[i] = store.Part{Number: p.PartNumber, ETag: strings.Trim(p.ETag, `"`)}
	}
	return parts, nil
}

// completeUpload makes the object. A client that asks again, because it did not get the answer,
// gets the same one.
func (c *call) completeUpload() error {
	s, database, err := c.uploadStore("uploadId")
	if err != nil {
		return err
	}
	text, err := c.small(maxPartsBody)
	if err != nil {
		return err
	}
	parts, err := parseParts(text)
	if err != nil {
		return err
	}
	key := uploadKey{c.repository, c.key, c.query.Get("uploadId")}
	c.mu.Lock()
	u := c.uploads[key]
	var object store.Object
	again := u != nil && u.object != nil && u.holder == c.holder
	if again {
		object = *u.object
	}
	c.mu.Unlock()
	if !again {
		object, err = s.Complete(c.r.Context(), c.key, key.id, parts)
		if err := c.done(err); err != nil {
			return err
		}
		c.written(database, object)
		c.mu.Lock()
		c.endUpload(key, &object)
		c.mu.Unlock()
	}
	answerXML(c.w, http.StatusOK, completedXML{
		Xmlns: xmlNamespace, Location: c.r.URL.Path, Bucket: c.repository, Key: c.key, ETag: `"` + object.ETag + `"`,
	})
	return nil
}

func (c *call) abortUpload() error {
	s, _, err := c.uploadStore("uploadId")
	if err != nil {
		return err
	}
	id := c.query.Get("uploadId")
	if err := c.done(s.Abort(c.r.Context(), c.key, id)); err != nil {
		return err
	}
	c.mu.Lock()
	c.endUpload(uploadKey{c.repository, c.key, id}, nil)
	c.mu.Unlock()
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
