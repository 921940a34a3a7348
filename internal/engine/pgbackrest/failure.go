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
	noList     = "the repository has WAL of this database, and no list of its backups"
	notTheRepo = "the repository is not prepared, has no files of this database, or cannot be reached"
)

// causes are looked at in this order. What is in none of them may pass by itself. The names of the
// codes are in pgBackRest's source, src/build/error/error.yaml.
var causes = []cause{
	// In the words of the system, by which it is known: see origin.
	{pattern: regexp.MustCompile(`\[28\] No space left on device`), reason: "No space left on device"},
	{pattern: regexp.MustCompile(`\[122\] Disk quota exceeded`), reason: "Disk quota exceeded"},
	{pattern: regexp.MustCompile(`unable to check pg2: .*`), reason: noPrimary},
	{pattern: regexp.MustCompile(`key/value found outside of section|unable to flush|cipher header|CryptoError`), reason: wrongKey, final: true, mute: true},
	{code: 28, reason: otherData, final: true, mute: true},
	{code: 44, reason: otherData, final: true, mute: true},
	{code: 51, reason: otherData, final: true, mute: true},
	{code: 45, reason: "the repository has another file of WAL with this name: two servers archived to it", final: true},
	{code: 75, pattern: regexp.MustCompile(`cannot be expired until`), reason: "the newest full backup cannot be removed before there is another one", final: true, mute: true},
	// It then lists no backups.
	{code: 75, pattern: regexp.MustCompile(`WARN: repo\d+: \[(?:FileOpen|FileRead|FileInfo|PathOpen|HostConnect|Protocol|Service|Kernel|Access)Error\]`), reason: notTheRepo},
	{code: 75, reason: "the repository does not have this backup", final: true},
	{code: 40, reason: "the data directory is not empty", final: true},
	{code: 26, reason: "a file is not what was written", final: true},
	{code: 50, reason: "another backup of this database is being made"},
	{code: 56, reason: "the database cannot be reached"},
	{code: 82, reason: "WAL that the backup needs was not archived in time"},
	{code: 55, pattern: regexp.MustCompile(`archive\.info exists but backup\.info is missing`), reason: noList, mute: true},
	{code: 55, pattern: regexp.MustCompile(`archive\.info|backup\.info`), reason: notTheRepo, mute: true},
	{code: 103, reason: notTheRepo},
}

var (
	errorLine = regexp.MustCompile(`^(?:P\d+ +)?ERROR: \[(\d+)\]: (.*)$`)
	// lostForm is what the script fetch says of a file that it has looked for more than once.
	lostForm = regexp.MustCompile(`(?m)^WAL file ([0-9A-F]{24}|[0-9A-F]{8}\.history) is (?:missing|damaged) in the repository.*$`)
	// ofCopier is an error of a process that copies files, and ofManifest one of what lists them. Both
	// come after the list of backups was read, so the key is the right one.
	ofCopier   = regexp.MustCompile(`^raised from local-\d+ [^:]*: `)
	ofManifest = regexp.MustCompile(`^unable to load backup manifest file `)
	// manifestDamaged is why, in a line after that.
	manifestDamaged = regexp.MustCompile(`\b(?:(?:Json)?FormatError|CryptoError|ChecksumError|AssertError|FileMissingError): `)
)

// missingFile is the code of an error about a file that is not there.
const missingFile = 55

// suspect reports whether a failure may come from a file of a backup that is damaged or missing.
func suspect(code int, words, out string) bool {
	switch {
	case ofManifest.MatchString(words):
		return manifestDamaged.MatchString(out) && !ofServer.MatchString(out)
	case ofCopier.MatchString(words):
		return garbled(code, words) || code == missingFile
	}
	return false
}

// Failed reads the first error that was printed.
func (e Engine) Failed(out []byte, exit int) backup.Failure {
	code, words, why := exit, "", ""
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\r\n")
		match := errorLine.FindStringSubmatch(line)
		if match == nil {
			if strings.HasSuffix(words, ":") && why == "" {
				why = " " + strings.TrimSpace(line)
			}
			continue
		}
		if n, err := strconv.Atoi(match[1]); err == nil && words == "" {
			code, words = n, match[2]
		}
	}
	if match := lostForm.FindStringSubmatch(string(out)); match != nil {
		return backup.Failure{Reason: plain(match[0]), Final: true, Lost: match[1]}
	}
	if suspect(code, words, string(out)) {
		return backup.Failure{Reason: plain("a file of the backup cannot be read (" + words + ")"), Suspect: true}
	}
	if words += why; words == "" {
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
