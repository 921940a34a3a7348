package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"howdah/internal/model/member"
)

// Assignments seals what the home tells its hosts of members, so that it knows it again when a
// host tells it back to a home that was restored, and has forgotten it. Who has the seal of an
// assignment was told it; nobody can make one of another assignment, or for another host.
//
// What is sealed is the text of the record, all of its fields but the seal: also those that this
// release does not know. Agents keep the text as they got it.
type Assignments struct{ key []byte }

// assignmentLabel tells the key from others that are made of the home's.
const assignmentLabel = "howdah assignment"

// sealField is member.Assignment.Seal in a record.
const sealField = "seal"

// NewAssignments makes a sealer of the home's key (home.SealKey).
func NewAssignments(homeKey []byte) (*Assignments, error) {
	key, err := hkdf.Key(sha256.New, homeKey, nil, assignmentLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("make the key that seals assignments: %w", err)
	}
	return &Assignments{key}, nil
}

// Seal answers the assignment with its seal for a host.
func (s *Assignments) Seal(host string, a member.Assignment) (member.Assignment, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return a, fmt.Errorf("seal the assignment of %s: %w", a.ID, err)
	}
	content, _, err := canonical(text)
	if err != nil {
		return a, fmt.Errorf("seal the assignment of %s: %w", a.ID, err)
	}
	a.Seal = s.of(host, content)
	return a, nil
}

// Open answers what a record says whose seal is right for a host. Everything else that the text
// may be is not right.
func (s *Assignments) Open(host string, text []byte) (a member.Assignment, right bool) {
	content, seal, err := canonical(text)
	if err != nil || !hmac.Equal([]byte(seal), []byte(s.of(host, content))) {
		return a, false
	}
	// The text itself may name a field twice, and mean something else by that.
	if err := json.Unmarshal(content, &a); err != nil {
		return a, false
	}
	a.Seal = seal
	return a, true
}

func (s *Assignments) of(host string, content []byte) string {
	sum := hmac.New(sha256.New, s.key)
	fmt.Fprintf(sum, "for %q\n", host)
	sum.Write(content)
	return base64.RawStdEncoding.EncodeToString(sum.Sum(nil))
}

var errNoRecord = errors.New("it is no record")

// canonical is a record without its seal, however it was written: fields by their names, no
// spaces, numbers as they were.
func canonical(text []byte) (content []byte, seal string, err error) {
	fields := map[string]any{}
	from := json.NewDecoder(bytes.NewReader(text))
	from.UseNumber()
	if err := from.Decode(&fields); err != nil {
		return nil, "", err
	}
	if _, err := from.Token(); !errors.Is(err, io.EOF) || fields == nil {
		return nil, "", errNoRecord
	}
	seal, _ = fields[sealField].(string)
	delete(fields, sealField)
	content, err = json.Marshal(fields)
	return content, seal, err
}
