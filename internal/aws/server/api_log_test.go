package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"howdah/api/rds"
	"howdah/internal/aws/wire"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/logfile"
	"howdah/internal/model/member"
)

// hostLogs are the agents of all hosts, with real files below a directory.
type hostLogs struct{ root string }

// agentOf is where the agent of a zone's host is said to answer.
func agentOf(host string) string { return host + ":1" }

func (h hostLogs) dir(member string) logfile.Dir {
	return logfile.Dir{Root: filepath.Join(h.root, member), Sub: "log", Owner: member}
}

func (h hostLogs) Files(_ context.Context, host, address, member string) ([]logfile.File, error) {
	if address != agentOf(host) {
		return nil, hostapi.ErrNoHost
	}
	return h.dir(member).List()
}

func (h hostLogs) Portion(_ context.Context, host, address string, in hostapi.LogRequest) (logfile.Portion, error) {
	if address != agentOf(host) {
		return logfile.Portion{}, hostapi.ErrNoHost
	}
	return h.dir(in.Member).Read(in.File, in.Marker, in.Lines)
}

// writes has a member of a user's only database write a log file of an hour of
// 2026-11-22, last written at its beginning.
func (u *user) writes(name string, hour int, text string) {
	u.Helper()
	d := u.server.Logs.(hostLogs).dir(member.ID(u.wanted()[0].ID, name))
	dir := filepath.Join(d.Root, d.Sub)
	path := filepath.Join(dir, fmt.Sprintf("postgresql.log.2026-11-22-%02d", hour))
	at := time.Date(2026, 11, 22, hour, 0, 0, 0, time.UTC)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
		u.Fatal(err)
	}
}

// logged is an instance with logs of three hours.
func logged(calls ...string) func(*user) {
	return func(u *user) {
		u.Helper()
		having(calls...)(u)
		u.writes("m1", 1, "a\nb\nc\n")
		u.writes("m1", 2, "<tag> & \x01 more\n")
		u.writes("m1", 3, "")
	}
}

const (
	showLogs  = "DescribeDBLogFiles?DBInstanceIdentifier=db"
	readLog   = "DownloadDBLogFilePortion?DBInstanceIdentifier=db&LogFileName=error/postgresql.log.2026-11-22-01"
	logList   = "DescribeDBLogFiles/DescribeDBLogFilesDetails"
	noLogFile = "DBLogFileNotFoundFault"
	notReady  = "DBInstanceNotReady"
)

var logScenarios = []scenario{
	{
		name: "all files", setup: logged(newDB), call: showLogs,
		want: []string{
			logList + "#3", logList + "[1]/LogFileName=error/postgresql.log.2026-11-22-01", logList + "[1]/Size=6",
			logList + "[1]/LastWritten=1795309200000", logList + "[3]/Size=0", "!Marker",
		},
	},
	{name: "files by name", setup: logged(newDB), call: showLogs + "&FilenameContains=22-02", want: []string{logList + "#1", logList + "/LogFileName=error/postgresql.log.2026-11-22-02"}},
	{name: "files by their very size", setup: logged(newDB), call: showLogs + "&FileSize=6", want: []string{logList + "#1"}},
	{name: "files by a directory", setup: logged(newDB), call: showLogs + "&FilenameContains=slowquery", want: []string{logList + "#0"}},
	{name: "files by size", setup: logged(newDB), call: showLogs + "&FileSize=7", want: []string{logList + "#1", logList + "/LogFileName=error/postgresql.log.2026-11-22-02"}},
	{name: "files by time", setup: logged(newDB), call: showLogs + "&FileLastWritten=1795312800000", want: []string{logList + "#2"}},
	{
		name: "files in pages", setup: logged(newDB), call: showLogs + "&MaxRecords=2", want: []string{logList + "#2"},
		after: func(u *user) {
			marker := u.do(showLogs + "&MaxRecords=2").text("Marker")
			u.do(showLogs+"&MaxRecords=2&Marker="+marker).has(logList+"#1", logList+"/LogFileName=error/postgresql.log.2026-11-22-03", "!Marker")
		},
	},
	{name: "files, a page of none", setup: logged(newDB), call: showLogs + "&MaxRecords=0", code: badValue, message: "MaxRecords"},
	{name: "files, a wrong marker", setup: logged(newDB), call: showLogs + "&Marker=x", code: badValue, message: "marker"},
	{name: "files, a filter", setup: logged(newDB), call: showLogs + "&" + badFilter, code: badValue, message: "filter"},
	{name: "files of nobody", call: showLogs, code: "DBInstanceNotFound"},
	{name: "files of an instance that is not laid out yet", setup: makeOnly(newDB), call: showLogs, code: notReady, message: "creating"},
	{
		name: "the whole of a short file", setup: logged(newDB), call: readLog, want: []string{"AdditionalDataPending=false"},
		after: func(u *user) { u.reads(readLog, "a\nb\nc\n") },
	},
	{
		name: "line by line", setup: logged(newDB), call: readLog + "&Marker=0&NumberOfLines=1", want: []string{"AdditionalDataPending=true"},
		after: func(u *user) {
			marker := "0"
			for n, want := range []string{"a\n", "b\n", "c\n", ""} {
				a := u.reads(readLog+"&NumberOfLines=1&Marker="+url.QueryEscape(marker), want)
				a.has(fmt.Sprintf("AdditionalDataPending=%t", n < 2))
				marker = a.text("Marker")
			}
			u.writes("m1", 1, "a\nb\nc\nd\n")
			u.reads(readLog+"&Marker="+url.QueryEscape(marker), "d\n")
		},
	},
	{
		name: "the last lines", setup: logged(newDB), call: readLog + "&NumberOfLines=2", want: []string{"AdditionalDataPending=false"},
		after: func(u *user) { u.reads(readLog+"&NumberOfLines=2", "b\nc\n") },
	},
	{
		name: "what XML cannot hold", setup: logged(newDB), call: readLog,
		after: func(u *user) {
			u.reads(with(readLog, "LogFileName=error/postgresql.log.2026-11-22-02"), "<tag> & \uFFFD more\n")
		},
	},
	{
		name: "an empty file", setup: logged(newDB), call: with(readLog, "LogFileName=error/postgresql.log.2026-11-22-03", "Marker=0"),
		want: []string{"AdditionalDataPending=false", "LogFileData="},
	},
	{
		name: "the log of a stopped instance", setup: logged(newDB, stopDB), call: readLog, want: []string{"AdditionalDataPending=false"},
	},
	{
		name: "after a failover, the log of the new primary", setup: logged(newDB + "&MultiAZ=true"), call: readLog,
		after: func(u *user) {
			marker := u.do(readLog).text("Marker")
			u.writes("m2", 1, "of the other\n")
			u.layOut(u.wanted()[0], func(s *scene) { s.promote("m2") })
			u.do(showLogs).has(logList + "#1")
			u.reads(readLog, "of the other\n")
			u.try(readLog+"&Marker="+url.QueryEscape(marker)).is(badValue, "failover")
		},
	},
	{
		name: "each instance of a cluster has its own", setup: having(newCluster, newMember, second), call: with(showLogs, "DBInstanceIdentifier=aura-2"), want: []string{logList + "#0"},
		after: func(u *user) {
			u.writes("m1", 1, "of the first\n")
			u.writes("m2", 1, "of the second\n")
			u.reads(with(readLog, "DBInstanceIdentifier=aura-1"), "of the first\n")
			u.reads(with(readLog, "DBInstanceIdentifier=aura-2"), "of the second\n")
		},
	},
	{
		name: "logs of a host that is silent", setup: logged(newDB), call: showLogs,
		after: func(u *user) {
			u.layOut(u.wanted()[0], func(s *scene) { s.layout.Members[0].Host = "host-of-old" })
			u.try(showLogs).is(notReady, "host-of-old")
			u.try(readLog).is(notReady, "host-of-old")
		},
	},
}

var logRefusals = append(refusals(logged(newDB), readLog, []refusal{
	{"LogFileName=error/postgresql.log.2026-11-22-09", noLogFile, "db"},
	{"LogFileName=postgresql.log.2026-11-22-01", noLogFile, "db"},
	{"LogFileName=error/../../log/postgresql.log.2026-11-22-01", noLogFile, "db"},
	{"LogFileName=error//etc/passwd", noLogFile, "db"},
	{"LogFileName=trace/alert_DATABASE.log", noLogFile, "db"},
	{"-LogFileName", missing, "LogFileName"},
	{"Marker=x", badValue, "Invalid marker"},
	{"Marker=1", badValue, "Invalid marker"},
	{"Marker=-1", badValue, "Invalid marker"},
	{"NumberOfLines=0", badValue, "NumberOfLines"},
	{"NumberOfLines=-5", badValue, "NumberOfLines"},
}), scenario{name: "a log of nobody", call: readLog, code: "DBInstanceNotFound"})

// reads: the call answers this part of a log.
func (u *user) reads(call, want string) *answer {
	u.Helper()
	a := u.do(call)
	var out rds.DownloadDBLogFilePortionDetails
	if err := wire.DecodeResult([]byte(a.body), "DownloadDBLogFilePortion", &out); err != nil {
		u.Fatal(err)
	}
	if got := wire.Or(out.LogFileData, "nothing"); got != want {
		u.Errorf("%s: read %q, want %q", call, got, want)
	}
	return a
}
