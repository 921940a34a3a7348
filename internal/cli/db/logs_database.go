package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"howdah/api"
	"howdah/api/rds"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
)

// databaseLog is the log of an instance, read over the API, on whichever host it is. It goes from
// one hour's file to the next.
type databaseLog struct {
	api      *client.Client
	instance string

	file   string
	marker *string
}

// ofDatabase returns the log of an instance, or of the writer of a cluster.
func ofDatabase(api *client.Client, t cli.Target) (*databaseLog, error) {
	l := &databaseLog{api: api, instance: t.Name}
	if t.Cluster == nil {
		return l, nil
	}
	l.instance = ""
	for _, m := range t.Cluster.DBClusterMembers {
		if l.instance == "" || cli.Value(m.IsClusterWriter) {
			l.instance = cli.Value(m.DBInstanceIdentifier)
		}
	}
	if l.instance == "" {
		return nil, fmt.Errorf("%s has no instances yet", t.Name)
	}
	return l, nil
}

// files returns the names of all files from one on, the oldest first.
func (l *databaseLog) files(ctx context.Context, from string) ([]string, error) {
	var names []string
	in := &rds.DescribeDBLogFilesMessage{DBInstanceIdentifier: &l.instance}
	for {
		var out rds.DescribeDBLogFilesResponse
		if err := l.api.RDS(ctx, "DescribeDBLogFiles", in, &out); err != nil {
			return nil, err
		}
		for _, f := range out.DescribeDBLogFiles {
			if name := cli.Value(f.LogFileName); name >= from {
				names = append(names, name)
			}
		}
		if cli.Value(out.Marker) == "" {
			return names, nil
		}
		in.Marker = out.Marker
	}
}

// portion reads on from the marker. Without a marker it reads the last lines.
func (l *databaseLog) portion(ctx context.Context, lines *int32) (string, bool, error) {
	var out rds.DownloadDBLogFilePortionDetails
	err := l.api.RDS(ctx, "DownloadDBLogFilePortion", &rds.DownloadDBLogFilePortionMessage{
		DBInstanceIdentifier: &l.instance, LogFileName: &l.file, Marker: l.marker, NumberOfLines: lines,
	}, &out)
	if err != nil {
		return "", false, err
	}
	l.marker = out.Marker
	return cli.Value(out.LogFileData), cli.Value(out.AdditionalDataPending), nil
}

// tail writes the last lines of the newest file.
func (l *databaseLog) tail(ctx context.Context, w io.Writer, lines int) error {
	names, err := l.files(ctx, "")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no log yet", l.instance)
	}
	l.file, l.marker = names[len(names)-1], nil
	count := int32(max(min(lines, 1<<20), 1))
	text, _, err := l.portion(ctx, &count)
	if err != nil || lines == 0 {
		return err
	}
	_, err = io.WriteString(w, text)
	return err
}

// more writes what was added since, also in files that are newer.
func (l *databaseLog) more(ctx context.Context, w io.Writer) error {
	for {
		// The list is read after the portion. If it has a newer file, PostgreSQL had written the
		// last of this one before.
		names, err := l.files(ctx, l.file)
		if err != nil {
			return err
		}
		for more := true; more; {
			var text string
			if text, more, err = l.portion(ctx, nil); err != nil {
				return err
			}
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
		}
		next := ""
		for _, name := range names {
			if name > l.file && (next == "" || name < next) {
				next = name
			}
		}
		if next == "" {
			return nil
		}
		beginning := "0"
		l.file, l.marker = next, &beginning
	}
}

// again reports whether the log of an instance may be there later, or may be elsewhere.
func (l *databaseLog) again(err error) (later, elsewhere bool) {
	elsewhere = client.IsCode(err, rds.ErrDBLogFileNotFound) || client.IsCode(err, api.ErrInvalidParameterValue)
	later = elsewhere || client.IsCode(err, rds.ErrDBInstanceNotReady) || client.IsCode(err, api.ErrServiceUnavailable) || errors.Is(err, client.ErrUnreachable)
	return later, elsewhere
}

// followDatabase writes the log of a database as it grows, until ctx ends. After a
// failover it goes on with the log of the new primary.
func followDatabase(ctx context.Context, o *cli.Options, l *databaseLog, lines int) error {
	told := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.Every):
		}
		err := l.more(ctx, o.Screen.Stdout)
		later, elsewhere := l.again(err)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was asked to end
		case err == nil:
			told = false
		case elsewhere:
			fmt.Fprintf(o.Screen.Stderr, "howdah: the log of %s is another one now, of the new primary: its end follows\n", l.instance)
			if err := l.tail(ctx, o.Screen.Stdout, lines); err != nil && ctx.Err() == nil {
				return err
			}
		case !later:
			return err
		case !told:
			told = true
			fmt.Fprintf(o.Screen.Stderr, "howdah: %v; waiting\n", err)
		}
	}
}
