// Package log is RDS's part on log files. They are where their databases are: an agent reads
// them.
package log

import (
	"context"
	"errors"
	"log/slog"
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
	"howdah/internal/state"
)

// Config is what the actions need. All of it is required.
type Config struct {
	State  *state.Client
	Looks  *look.Source
	Reader Reader
	Log    *slog.Logger
}

// Reader reads log files where they are. See hostapi.LogReader.
type Reader interface {
	Files(ctx context.Context, host, address, member string) ([]logfile.File, error)
	Portion(ctx context.Context, host, address string, in hostapi.LogRequest) (logfile.Portion, error)
}

// service has the handlers.
type service struct {
	*state.Client
	looks  *look.Source
	reader Reader
	log    *slog.Logger
}

// Actions are those on log files.
func Actions(cfg Config) map[string]front.Action {
	s := &service{cfg.State, cfg.Looks, cfg.Reader, cfg.Log}
	return map[string]front.Action{
		"DescribeDBLogFiles":       front.On(s.describeDBLogFiles),
		"DownloadDBLogFilePortion": front.On(s.downloadDBLogFilePortion),
	}
}

// fileKind is what the API writes before the names of files, as if it were a directory.
const fileKind = "error/"

// maxFiles is the largest page of log files; the smallest is one.
const maxFiles = 1000

// describeDBLogFiles lists the log files of the member that an instance is now.
func (s *service) describeDBLogFiles(ctx context.Context, c front.Call, in *rds.DescribeDBLogFilesMessage) (*rds.DescribeDBLogFilesResponse, error) {
	if _, err := look.ReadFilters(in.Filters); err != nil {
		return nil, err
	}
	size := wire.Or(in.MaxRecords, 100)
	if size < 1 || size > maxFiles {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %d for MaxRecords. Must be between 1 and %d", size, maxFiles)
	}
	name, at, err := s.placeOf(ctx, c, in.DBInstanceIdentifier)
	if err != nil {
		return nil, err
	}
	files, err := s.reader.Files(ctx, at.Host, s.looks.AgentAddress(at.Host), at.member)
	if err != nil {
		return nil, s.refusal(name, at, err)
	}
	var matching []rds.DescribeDBLogFilesDetails
	for _, f := range files {
		written := f.Written.UnixMilli()
		full := fileKind + f.Name
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
func (s *service) downloadDBLogFilePortion(ctx context.Context, c front.Call, in *rds.DownloadDBLogFilePortionMessage) (*rds.DownloadDBLogFilePortionDetails, error) {
	lines := wire.Or(in.NumberOfLines, 0)
	if in.NumberOfLines != nil && lines < 1 {
		return nil, wire.NewError(api.ErrInvalidParameterValue, "Invalid value %d for NumberOfLines. Must be at least 1", lines)
	}
	name, at, err := s.placeOf(ctx, c, in.DBInstanceIdentifier)
	if err != nil {
		return nil, err
	}
	file, ours := strings.CutPrefix(wire.Or(in.LogFileName, ""), fileKind)
	if !ours {
		return nil, s.refusal(name, at, logfile.ErrNoFile)
	}
	p, err := s.reader.Portion(ctx, at.Host, s.looks.AgentAddress(at.Host), hostapi.LogRequest{
		Member: at.member, File: file, Marker: wire.Or(in.Marker, ""), Lines: int(lines),
	})
	if err != nil {
		return nil, s.refusal(name, at, err)
	}
	text := string(p.Text)
	return &rds.DownloadDBLogFilePortionDetails{LogFileData: &text, Marker: &p.Next, AdditionalDataPending: &p.More}, nil
}

// place is the member whose log is an instance's: its own in a cluster, else that
// of the primary, or of any while there is none.
type place struct {
	plan.Placed
	member string
}

// placeOf finds the instance of an identifier, and whose log is its own.
func (s *service) placeOf(ctx context.Context, c front.Call, identifier *string) (string, place, error) {
	if err := s.Fresh(ctx); err != nil {
		return "", place{}, err
	}
	l := s.looks.Of(c.Account)
	record, err := l.FindInstance(c.Scope, wire.Or(identifier, ""))
	if err != nil {
		return "", place{}, err
	}
	i := record.Value
	at, ok := memberOf(l, i)
	if !ok {
		return i.Name, at, wire.NewError(rds.ErrDBInstanceNotReady, "The DB instance %s has no logs yet: its status is %s.", i.Name, l.Status(i))
	}
	return i.Name, at, nil
}

// memberOf is the member whose log is an instance's; ok is false where it has none.
func memberOf(l *look.Look, i spec.Instance) (at place, ok bool) {
	facts := l.FactsOf(i)
	for m := range look.PlacesOf(i, facts) {
		// The members of a cluster's seat are one, or two while one replaces the other.
		better := i.Cluster == "" && m.Name == facts.Leader || i.Cluster != "" && m.Going == plan.Staying
		if !ok || better {
			at, ok = place{m, member.ID(facts.Want.ID, m.Name)}, true
		}
	}
	return at, ok
}

// refusal is the API's error for what an agent, or nobody, answered.
func (s *service) refusal(name string, at place, err error) error {
	switch {
	case errors.Is(err, logfile.ErrNoFile):
		return wire.NewError(rds.ErrDBLogFileNotFound, "The DB instance %s has no log file of this name: see LogFileName of DescribeDBLogFiles.", name)
	case errors.Is(err, logfile.ErrMarker):
		return wire.NewError(api.ErrInvalidParameterValue, "Invalid marker: it does not belong to this log file of the DB instance %s. "+
			"The file was replaced, or there was a failover since: begin with the Marker 0.", name)
	case errors.Is(err, hostapi.ErrNoHost):
		s.log.Warn("read log", "instance", name, "host", at.Host, "error", err)
		return wire.NewError(rds.ErrDBInstanceNotReady, "The logs of the DB instance %s cannot be read now: the host %s does not answer.", name, at.Host)
	}
	return err
}
