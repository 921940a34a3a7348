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

// Assignments seals what the home tells its hosts about members. A home that was restored has
// forgotten some of it. When a host tells such an assignment back, the home knows by the seal that
// it is the home's own. Nobody else can make a seal, and a seal fits no other assignment and no
// other host.
//
// The seal covers the text of the record, with all fields except the seal itself, also those that
// this release does not know. Agents keep the text as they got it.
type Assignments struct{ key []byte }

// assignmentLabel tells this key from others that are derived from the home's key.
const assignmentLabel = "howdah assignment"

// sealField is member.Assignment.Seal in a record.
const sealField = "seal"

// NewAssignments returns a sealer with the home's key (home.SealKey).
func NewAssignments(homeKey []byte) (*Assignments, error) {
	key, err := hkdf.Key(sha256.New, homeKey, nil, assignmentLabel, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("make the key that seals assignments: %w", err)
	}
	return &Assignments{key}, nil
}

// Seal returns the assignment with its seal for a host.
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

// Open returns what a record says. right says whether the record has the right seal for the host.
// No other text is right.
func (s *Assignments) Open(host string, text []byte) (a member.Assignment, right bool) {
	content, seal, err := canonical(text)
	if err != nil || !hmac.Equal([]byte(seal), []byte(s.of(host, content))) {
		return a, false
	}
	// The text itself may name a field twice, and then mean something else.
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

// canonical returns a record without its seal, in one form however it was written: fields sorted by
// name, no spaces, numbers unchanged.
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
