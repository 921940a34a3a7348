package server

import (
	"context"
	"errors"
	"strings"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/aws/front"
	"howdah/internal/aws/page"
	"howdah/internal/aws/rds/look"
	"howdah/internal/aws/wire"
	"howdah/internal/control/plan"
	"howdah/internal/host/hostapi"
	"howdah/internal/host/logfile"
	"howdah/internal/model/member"
	"howdah/internal/model/spec"
)

// logActions are those on log files.
func (s *Server) logActions() map[string]front.Action {
	return map[string]front.Action{
		"DescribeDBLogFiles":       front.On(s.describeDBLogFiles),
		"DownloadDBLogFilePortion": front.On(s.downloadDBLogFilePortion),
	}
}

// Logs reads log files where they are. See hostapi.LogReader.
type Logs interface {
	Files(ctx context.Context, host, address, member string) ([]logfile.File, error)
	Portion(ctx context.Context, host, address string, in hostapi.LogRequest) (logfile.Portion, error)
}

// logKind is what the API writes before the names of files, as if it were a directory.
const logKind = "error/"

// maxLogFiles is the largest page of log files; the smallest is one.
const maxLogFiles = 1000

// describeDBLogFiles lists the log files of the member that an instance is now.
func (s *Server) describeDBLogFiles(ctx context.Context, c front.Call, in *rds.DescribeDBLogFilesMessage) (*rds.DescribeDBLogFilesResponse, error) {
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	size := wire.Or(in.MaxRecords, 100)
	if size < 1 || size > maxLogFiles {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %d for MaxRecords. Must be between 1 and %d", size, maxLogFiles)
	}
	name, at, err := s.logPlace(ctx, c, in.DBInstanceIdentifier)
	if err != nil {
		return nil, err
	}
	files, err := s.Logs.Files(ctx, at.Host, s.looks.AgentAddress(at.Host), at.member)
	if err != nil {
		return nil, s.logError(name, at, err)
	}
	var matching []rds.DescribeDBLogFilesDetails
	for _, f := range files {
		written := f.Written.UnixMilli()
		full := logKind + f.Name
		if strings.Contains(full, wire.Or(in.FilenameContains, "")) && written >= wire.Or(in.FileLastWritten, 0) && f.Size > wire.Or(in.FileSize, -1) {
			matching = append(matching, rds.DescribeDBLogFilesDetails{LogFileName: &full, LastWritten: &written, Size: wire.Some(f.Size)})
		}
	}
	chosen, marker, err := page.Sized(matching, func(f rds.DescribeDBLogFilesDetails) string { return *f.LogFileName }, int(size), in.Marker)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBLogFilesResponse{DescribeDBLogFiles: wire.List(chosen), Marker: marker}, nil
}

// downloadDBLogFilePortion reads a part of a log file: the end, or what follows a
// marker. A marker belongs to one file of one member: after a failover it is refused
// rather than taken for a place in the other member's file.
func (s *Server) downloadDBLogFilePortion(ctx context.Context, c front.Call, in *rds.DownloadDBLogFilePortionMessage) (*rds.DownloadDBLogFilePortionDetails, error) {
	lines := wire.Or(in.NumberOfLines, 0)
	if in.NumberOfLines != nil && lines < 1 {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %d for NumberOfLines. Must be at least 1", lines)
	}
	name, at, err := s.logPlace(ctx, c, in.DBInstanceIdentifier)
	if err != nil {
		return nil, err
	}
	file, ours := strings.CutPrefix(wire.Or(in.LogFileName, ""), logKind)
	if !ours {
		return nil, s.logError(name, at, logfile.ErrNoFile)
	}
	p, err := s.Logs.Portion(ctx, at.Host, s.looks.AgentAddress(at.Host), hostapi.LogRequest{
		Member: at.member, File: file, Marker: wire.Or(in.Marker, ""), Lines: int(lines),
	})
	if err != nil {
		return nil, s.logError(name, at, err)
	}
	text := string(p.Text)
	return &rds.DownloadDBLogFilePortionDetails{LogFileData: &text, Marker: &p.Next, AdditionalDataPending: &p.More}, nil
}

// logPlace is the member whose log is an instance's: its own in a cluster, else that
// of the primary, or of any while there is none.
type logPlace struct {
	plan.Placed
	member string
}

func (s *Server) logPlace(ctx context.Context, c front.Call, identifier *string) (string, logPlace, error) {
	if err := s.client.Fresh(ctx); err != nil {
		return "", logPlace{}, err
	}
	l := s.look(c.Account)
	record, err := l.FindInstance(c.Scope, wire.Or(identifier, ""))
	if err != nil {
		return "", logPlace{}, err
	}
	i := record.Value
	at, ok := l.logMember(i)
	if !ok {
		return i.Name, at, wire.NewError(rds.ErrDBInstanceNotReady, "The DB instance %s has no logs yet: its status is %s.", i.Name, l.Status(i))
	}
	return i.Name, at, nil
}

func (l *sight) logMember(i spec.Instance) (logPlace, bool) {
	facts := l.FactsOf(i)
	var at logPlace
	found := false
	for _, m := range facts.Layout.Members {
		if i.Cluster != "" && m.Seat != i.ResourceID || m.Leaving {
			continue
		}
		// The members of a cluster's seat are one, or two while one replaces the other.
		better := i.Cluster == "" && m.Name == facts.Leader || i.Cluster != "" && m.Going == plan.Staying
		if !found || better {
			at, found = logPlace{m, member.ID(facts.Want.ID, m.Name)}, true
		}
	}
	return at, found
}

// logError is the API's error for what an agent, or nobody, answered.
func (s *Server) logError(name string, at logPlace, err error) error {
	switch {
	case errors.Is(err, logfile.ErrNoFile):
		return wire.NewError(rds.ErrDBLogFileNotFound, "The DB instance %s has no log file of this name: see LogFileName of DescribeDBLogFiles.", name)
	case errors.Is(err, logfile.ErrMarker):
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid marker: it does not belong to this log file of the DB instance %s. "+
			"The file was replaced, or there was a failover since: begin with the Marker 0.", name)
	case errors.Is(err, hostapi.ErrNoHost):
		s.Log.Warn("read log", "instance", name, "host", at.Host, "error", err)
		return wire.NewError(rds.ErrDBInstanceNotReady, "The logs of the DB instance %s cannot be read now: the host %s does not answer.", name, at.Host)
	}
	return err
}
