package clitest

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
)

// Logs are log files of instances, by instance and in order.
type Logs struct {
	Mu    sync.Mutex
	Files map[string][]Log // guarded by mu
	Owner string           // guarded by mu: markers of another one are refused
	Away  bool             // guarded by mu: the host does not answer
	Asked int              // guarded by mu: while it was away
}

// Log is a log file.
type Log struct{ Name, Text string }

// Set changes what is there.
func (f *Logs) Set(change func()) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	change()
}

func (f *Logs) list(instance string) (any, *wire.Error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Away {
		f.Asked++
		return nil, wire.NewError(rds.ErrDBInstanceNotReady, "the host does not answer")
	}
	out := &rds.DescribeDBLogFilesResponse{DescribeDBLogFiles: []rds.DescribeDBLogFilesDetails{}}
	for _, file := range f.Files[instance] {
		out.DescribeDBLogFiles = append(out.DescribeDBLogFiles, rds.DescribeDBLogFilesDetails{
			LogFileName: ptr(file.Name), LastWritten: ptr(int64(0)), Size: ptr(int64(len(file.Text))),
		})
	}
	return out, nil
}

// portion answers with at most two lines of what follows a marker.
func (f *Logs) portion(instance, name, marker, lines string) (any, *wire.Error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, file := range f.Files[instance] {
		if file.Name != name {
			continue
		}
		if marker == "" {
			all := strings.SplitAfter(strings.TrimSuffix(file.Text, "\n"), "\n")
			n, _ := strconv.Atoi(lines)
			return f.answer(strings.Join(all[max(len(all)-n, 0):], "")+"\n", len(file.Text), false), nil
		}
		owner, at, _ := strings.Cut(marker, ":")
		offset, _ := strconv.Atoi(at)
		if marker != "0" && owner != f.Owner {
			return nil, wire.NewError("InvalidParameterValue", "Invalid marker")
		}
		rest := strings.SplitAfterN(file.Text[offset:], "\n", 3)
		more := len(rest) == 3 && rest[2] != ""
		text := strings.Join(rest[:min(len(rest), 2)], "")
		return f.answer(text, offset+len(text), more), nil
	}
	return nil, wire.NewError(rds.ErrDBLogFileNotFound, "no such file")
}

func (f *Logs) answer(text string, next int, more bool) any {
	return &rds.DownloadDBLogFilePortionDetails{LogFileData: &text, Marker: ptr(fmt.Sprintf("%s:%d", f.Owner, next)), AdditionalDataPending: &more}
}
