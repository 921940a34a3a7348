package script

import (
	"regexp"
	"strings"
)

// renamed has actions that the AWS CLI splits into several commands with other names. It names the
// command that the script uses.
var renamed = map[string]string{"ModifyOptionGroup": "add-option-to-option-group"}

var (
	wordBegins = regexp.MustCompile(`(.)([A-Z][a-z]+)`)
	wordEnds   = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

// Command returns the AWS CLI's name of an action: "describe-db-instances".
func Command(action string) string {
	if name, ok := renamed[action]; ok {
		return name
	}
	name := wordBegins.ReplaceAllString(action, "${1}-${2}")
	return strings.ToLower(wordEnds.ReplaceAllString(name, "${1}-${2}"))
}
