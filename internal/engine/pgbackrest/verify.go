package pgbackrest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"howdah/internal/engine/backup"
)

// What verify prints. Files are named as "15-1/0000000100000000/000000010000000000000003-SHA1.zst"
// and "20261124-160054F/bundle/1", or by what they are in the data directory.
var (
	verifyStatus = regexp.MustCompile(`(?m)^(?:P00   INFO: )?\s*status: (ok|error)\b`)
	verifyFile   = regexp.MustCompile(`^P\d+ +(?:INFO|WARN): (file missing|invalid checksum|invalid size) '(.*)'$`)
	// verifyOther is a file that could not be read, with the code of the error.
	verifyOther = regexp.MustCompile(`^P\d+ +INFO: invalid result (.*): \[(\d+)\] (.*)$`)
	// verifyBackup is a backup of which no file could be looked at: its manifest cannot be read.
	verifyBackup = regexp.MustCompile(`^\s*backup: ([^,]+), status: (?:invalid|manifest missing), total files checked: 0,`)
	// verifyAway is an error of the way to the repository. What is in a damaged manifest may be anything,
	// and so may be the words about it.
	verifyAway   = regexp.MustCompile(`^P00 DETAIL: (?:.*\b(?:HTTP|TLS|EOF|timeout|unable to (?:connect|get address|read|list))\b|unable to open (?:file|path) )`)
	verifyUnread = regexp.MustCompile(`^\s*No usable (?:backup|archive)\.info file`)
)

var verifyWords = map[string]string{
	"file missing": "is missing", "invalid checksum": "is not what was written", "invalid size": "is not as long as what was written",
}

var errUnread = errors.New("the repository could not be read")

// Verified reads what verify printed. Its exit code is 0 whatever it found, since release 2.45.
func (e Engine) Verified(out []byte, exit int) ([]backup.Fault, error) {
	if exit != 0 {
		return nil, fmt.Errorf("%w: %s", errUnread, e.Failed(out, exit).Reason)
	}
	v := verified{}
	for line := range strings.Lines(string(out)) {
		if err := v.read(strings.TrimRight(line, "\r\n")); err != nil {
			return nil, err
		}
	}
	status := verifyStatus.FindSubmatch(out)
	if status != nil && string(status[1]) == "error" && len(v.faults) == 0 {
		v.faults = append(v.faults, backup.Fault{What: "is missing, or is not what was written"})
	}
	return v.faults, nil
}

// verified is what was read of verify's output.
type verified struct {
	faults []backup.Fault
	away   bool // something could not be reached
}

func (v *verified) read(line string) error {
	if match := verifyFile.FindStringSubmatch(line); match != nil {
		v.faults = append(v.faults, faultOf(match[2], verifyWords[match[1]]))
		return nil
	}
	if match := verifyOther.FindStringSubmatch(line); match != nil {
		code, err := strconv.Atoi(match[2])
		if err != nil || !garbled(code, match[3]) {
			return fmt.Errorf("%w: %s", errUnread, plain(match[1]+": "+match[3]))
		}
		v.faults = append(v.faults, faultOf(match[1], "cannot be read ("+plain(match[3])+")"))
		return nil
	}
	switch match := verifyBackup.FindStringSubmatch(line); {
	case match != nil && v.away:
		return fmt.Errorf("%w: the manifest of %s", errUnread, plain(match[1]))
	case match != nil:
		v.faults = append(v.faults, backup.Fault{File: plain(match[1]) + "/backup.manifest", Backup: plain(match[1]), What: "is missing or damaged, and its copy, too"})
	case verifyAway.MatchString(line):
		v.away = true
	case verifyUnread.MatchString(line):
		return fmt.Errorf("%w: %s", errUnread, plain(strings.TrimSpace(line)))
	}
	return nil
}

// labelForm is what pgBackRest calls backups.
var labelForm = regexp.MustCompile(`^\d{8}-\d{6}F(?:_\d{8}-\d{6}[DI])?$`)

func faultOf(path, what string) backup.Fault {
	f := backup.Fault{File: plain(path), What: what}
	first, _, _ := strings.Cut(path, "/")
	if labelForm.MatchString(first) {
		f.Backup = first
	} else if match := walForm.FindStringSubmatch(path[strings.LastIndex(path, "/")+1:]); match != nil {
		f.WAL = match[1] + match[2]
	}
	return f
}

// Codes of errors that a file causes which is not what was written, by their names in pgBackRest's
// source: assert, checksum, format, crypto, JSON.
var garbledCodes = map[int]bool{25: true, 26: true, 29: true, 95: true, 99: true}

// ofServer is what such an error says of the server's answer in place of the file.
var ofServer = regexp.MustCompile(`HTTP|\bmultipart\b|response|TLS|XML`)

// garbled reports whether an error of reading a file may come from its content.
func garbled(code int, words string) bool { return garbledCodes[code] && !ofServer.MatchString(words) }
