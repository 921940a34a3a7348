package server

import (
	"encoding/base64"
	"strings"

	"howdah/api"
	"howdah/internal/aws/wire"
)

// markerSalt tells our markers from any other text.
const markerSalt = "howdah:"

func makeMarker(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(markerSalt + name))
}

func readMarker(marker string) (string, error) {
	text, err := base64.RawURLEncoding.DecodeString(marker)
	name, ours := strings.CutPrefix(string(text), markerSalt)
	if err != nil || !ours {
		return "", wire.NewError(api.ErrInvalidParameterValue, "Invalid marker: %s. Use the Marker or NextToken of an earlier answer, unchanged.", marker)
	}
	return name, nil
}
