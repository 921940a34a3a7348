package gateway

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"

	"howdah/internal/repository/store"
)

const (
	// maxMany is how many objects one request may delete, maxManyBody how long it may be in bytes.
	maxMany     = 1000
	maxManyBody = 2 << 20
)

type deletedXML struct{ Key string }

type notDeletedXML struct{ Key, Code, Message string }

type manyXML struct {
	XMLName xml.Name `xml:"DeleteResult"`
	Xmlns   string   `xml:"xmlns,attr"`
	Deleted []deletedXML
	Error   []notDeletedXML
}

// parseMany returns the keys that a request wants to be deleted.
func parseMany(text []byte) (keys []string, quiet bool, err error) {
	var request struct {
		XMLName xml.Name
		Quiet   bool
		Object  []struct {
			Key       string
			VersionID string `xml:"VersionId"`
		}
	}
	if err := decodeXML(text, &request, "Delete", maxMany); err != nil {
		return nil, false, err
	}
	for _, object := range request.Object {
		if object.VersionID != "" {
			return nil, false, notDone("versions of objects")
		}
		keys = append(keys, object.Key)
	}
	return keys, request.Quiet, nil
}

// decodeXML decodes a document that may have so many elements below its first one.
func decodeXML(text []byte, value any, name string, most int) error {
	decoder := xml.NewDecoder(bytes.NewReader(text))
	depth, elements := 0, 0
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errXML
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; depth == 1 && t.Name.Local != name || depth > 3 {
				return errXML
			}
			if depth == 2 {
				elements++
			}
		case xml.EndElement:
			depth--
		case xml.Directive:
			return errXML
		}
		if elements > most+1 { // Quiet is one
			return errXML
		}
	}
	if xml.Unmarshal(text, value) != nil {
		return errXML
	}
	return nil
}

// deleteMany deletes objects, and says of each what became of it.
func (c *call) deleteMany() error {
	if err := c.only("delete"); err != nil {
		return err
	}
	if !c.knows(c.holder, c.repository) {
		return errDenied
	}
	text, err := c.small(maxManyBody)
	if err != nil {
		return err
	}
	keys, quiet, err := parseMany(text)
	if err != nil {
		return err
	}
	answer := manyXML{Xmlns: xmlNamespace}
	var s store.Store
	var allowed []string
	for _, key := range keys {
		found, _, err := c.allow(c.holder, c.repository, key, true)
		if err == nil {
			err = store.CheckKey(key)
		}
		if err != nil {
			refused := refusalOf(err, false)
			answer.Error = append(answer.Error, notDeletedXML{key, refused.code, refused.message})
			continue
		}
		s, allowed = found, append(allowed, key)
	}
	if len(allowed) > 0 {
		if err := c.done(s.Delete(c.r.Context(), allowed...)); err != nil {
			return err // to be tried again as a whole
		}
	}
	for _, key := range allowed {
		if !quiet {
			answer.Deleted = append(answer.Deleted, deletedXML{key})
		}
	}
	answerXML(c.w, http.StatusOK, answer)
	return nil
}
