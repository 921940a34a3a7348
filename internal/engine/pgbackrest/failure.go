package pgbackrest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"howdah/internal/engine/backup"
)

// cause is what a code of pgBackRest's errors means to us. code 0 fits all. pattern tells apart
// errors with one code by all that was printed; nil fits all.
type cause struct {
	code    int
	pattern *regexp.Regexp
	reason  string
	final   bool
	// mute says that pgBackRest's own words are of no use.
	mute bool
}

const (
	wrongKey   = "the repository's files cannot be read with this key: it is another repository, or another key"
	otherData  = "the repository has the files of a server with another system identifier or major version"
	noPrimary  = "the primary cannot be reached from its standby, or its host has another release of pgBackRest"
	notTheRepo = "the repository is not prepared, has no files of this database, or cannot be reached"
)

// causes are looked at in this order. What is in none of them may pass by itself. The names of the
// codes are in pgBackRest's source, src/build/error/error.yaml.
var causes = []cause{
	{pattern: regexp.MustCompile(`unable to check pg2: .*`), reason: noPrimary},
	{pattern: regexp.MustCompile(`key/value found outside of section|unable to flush|cipher header|CryptoError`), reason: wrongKey, final: true, mute: true},
	{code: 28, reason: otherData, final: true, mute: true},
	{code: 44, reason: otherData, final: true, mute: true},
	{code: 51, reason: otherData, final: true, mute: true},
	{code: 45, reason: "the repository has another file of WAL with this name: two servers archived to it", final: true},
	{code: 75, pattern: regexp.MustCompile(`cannot be expired until`), reason: "the newest full backup cannot be removed before there is another one", final: true, mute: true},
	{code: 75, reason: "the repository does not have this backup", final: true},
	{code: 40, reason: "the data directory is not empty", final: true},
	{code: 26, reason: "a file is not what was written", final: true},
	{code: 50, reason: "another backup of this database is being made"},
	{code: 56, reason: "the database cannot be reached"},
	{code: 82, reason: "WAL that the backup needs was not archived in time"},
	{code: 55, pattern: regexp.MustCompile(`archive\.info|backup\.info`), reason: notTheRepo, mute: true},
	{code: 103, reason: notTheRepo},
}

var (
	errorLine = regexp.MustCompile(`^(?:P\d+ +)?ERROR: \[(\d+)\]: (.*)$`)
)

// Failed reads the first error that was printed.
func (e Engine) Failed(out []byte, exit int) backup.Failure {
	code, words := exit, ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		match := errorLine.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		if n, err := strconv.Atoi(match[1]); err == nil && words == "" {
			code, words = n, match[2]
		}
	}
	if words == "" {
		words = lastLine(string(out))
	}
	for _, c := range causes {
		if c.code != 0 && c.code != code || c.pattern != nil && !c.pattern.MatchString(string(out)) {
			continue
		}
		reason := c.reason
		if !c.mute && words != "" {
			reason += " (" + words + ")"
		}
		return backup.Failure{Reason: plain(reason), Final: c.final}
	}
	if words == "" {
		words = fmt.Sprintf("it ended with exit code %d, and said nothing", exit)
	}
	return backup.Failure{Reason: plain(words)}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// longest is how much of pgBackRest's words is of use.
const longest = 400

// plain makes one line of readable text.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest]) + "…"
	}
	return text
}
