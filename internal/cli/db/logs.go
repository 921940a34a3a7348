package db

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/host/supervise"
	"howdah/internal/identity/home"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
)

// parts returns the names of the parts of `howdah up`.
func parts() []string {
	return append([]string{"up", "serve", "edge"}, cli.AgentNames()...)
}

func newLogs(o *cli.Options) *cobra.Command {
	var follow, patroniToo bool
	var lines int
	cmd := &cobra.Command{
		Use: "logs PART|NAME", Short: "Show the log of a part of Howdah, or of a database's primary", Args: cli.OneName,
		Aliases: []string{"log"},
		Long: "Shows the end of a log: of a part of `howdah up` on this machine (" + strings.Join(parts(), ", ") + "), or of the " +
			"PostgreSQL of an instance, or of a cluster's writer, on whichever machine that is.",
		Example: "  howdah logs serve -f\n  howdah logs orders -n 100\n  howdah logs orders --patroni",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			names, directive := o.CompleteNames(cmd, args, word)
			return append(names, parts()...), directive
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if lines < 0 {
				return fmt.Errorf("--lines cannot be negative: %w", cli.ErrUsage)
			}
			return showLog(cmd, o, args[0], logOptions{follow: follow, patroni: patroniToo, lines: lines})
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as it grows, until Ctrl-C")
	cmd.Flags().IntVarP(&lines, "lines", "n", 40, "how many lines from the end")
	cmd.Flags().BoolVar(&patroniToo, "patroni", false, "of a database that is on this machine: Patroni's log in place of PostgreSQL's")
	return cmd
}

// logOptions are what a log is shown with.
type logOptions struct {
	follow, patroni bool
	lines           int
}

// showLog shows a file of this machine, or the log of a database over the API.
func showLog(cmd *cobra.Command, o *cli.Options, name string, as logOptions) error {
	ctx := cmd.Context()
	if slices.Contains(parts(), name) {
		h, err := home.Open(o.Home)
		if err != nil {
			return err
		}
		return tail(ctx, o, h.LogFile(name), as.lines, as.follow)
	}
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	t, err := cli.Find(ctx, api, name)
	if err != nil {
		return err
	}
	if as.patroni {
		path, err := patroniLog(ctx, o, t)
		if err != nil {
			return err
		}
		return tail(ctx, o, path, as.lines, as.follow)
	}
	l, err := ofDatabase(api, t)
	if err != nil {
		return err
	}
	if err := l.tail(ctx, o.Screen.Stdout, as.lines); err != nil || !as.follow {
		return err
	}
	return followDatabase(ctx, o, l, as.lines)
}

// patroniLog returns the path of Patroni's log of a database's primary, on this machine.
func patroniLog(ctx context.Context, o *cli.Options, t cli.Target) (string, error) {
	h, err := home.Open(o.Home)
	if err != nil {
		return "", err
	}
	d, _, err := t.Truth(ctx)
	if err != nil {
		return "", err
	}
	if d == nil || len(d.Members) == 0 {
		return "", fmt.Errorf("%s has no members yet", t.Name)
	}
	m := memberToRead(d, t.Name)
	dir := filepath.Join(h.HostDir(m.Zone), "members", member.ID(d.ResourceID, m.Name))
	if _, err := os.Stat(dir); err != nil {
		return "", fmt.Errorf("%s is on the host %s: look there", t.Name, m.Host)
	}
	return newest(filepath.Join(dir, patroni.LogDir, "patroni.log"))
}

// memberToRead returns the member of an instance of a cluster, or else the primary, or else any
// member.
func memberToRead(d *admin.Database, name string) admin.Member {
	for _, m := range d.Members {
		if m.Instance == name && name != d.Name {
			return m
		}
	}
	for _, m := range d.Members {
		if m.Role != admin.RoleStandby {
			return m
		}
	}
	return d.Members[0]
}

// newest returns the matching file that was written last.
func newest(pattern string) (string, error) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return "", fmt.Errorf("there is no log %s yet", pattern)
	}
	var path string
	var at time.Time
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.ModTime().After(at) {
			path, at = f, info.ModTime()
		}
	}
	return path, nil
}

// tailBlock is how much of the end of a file is looked through for lines.
const tailBlock = 1 << 20

// tail writes the last lines of a file. With follow it also writes what is added, also to the file
// that takes its place when it is put aside.
func tail(ctx context.Context, o *cli.Options, path string, lines int, follow bool) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no log %s yet", path)
	}
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	defer func() { file.Close() }()
	found, err := seekLines(file, lines)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if err := tailAside(o, supervise.Aside(path, 1), lines-found); err != nil {
		return err
	}
	for {
		// A moment later a file that was put aside gets no more lines.
		next := successor(file, path)
		if _, err := io.Copy(o.Screen.Stdout, file); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if !follow {
			return nil
		}
		if next != nil {
			file.Close()
			file = next
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.Every):
		}
	}
}

// tailAside writes the last lines of a log that was put aside, if there is one.
func tailAside(o *cli.Options, path string, lines int) error {
	file, err := os.Open(path)
	if err != nil || lines <= 0 {
		return nil
	}
	defer file.Close()
	if _, err := seekLines(file, lines); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	if _, err := io.Copy(o.Screen.Stdout, file); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return nil
}

// successor opens the file that is now at the path in place of this one. It returns nil if there is
// none, or if it has no lines yet: until then the old file may get more.
func successor(file *os.File, path string) *os.File {
	old, err := file.Stat()
	if err != nil {
		return nil
	}
	next, err := os.Open(path)
	if err != nil {
		return nil
	}
	if info, err := next.Stat(); err != nil || info.Size() == 0 || os.SameFile(old, info) {
		next.Close()
		return nil
	}
	return next
}

// seekLines goes to where the last lines of a file begin, and returns how many lines follow.
func seekLines(file *os.File, lines int) (int, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil || lines == 0 {
		return 0, err
	}
	from := max(size-tailBlock, 0)
	text := make([]byte, size-from)
	if _, err := file.ReadAt(text, from); err != nil && err != io.EOF {
		return 0, err
	}
	start, found := len(text), 0
	for start > 0 && found < lines {
		start = bytes.LastIndexByte(text[:start-1], '\n') + 1
		found++
	}
	_, err = file.Seek(from+int64(start), io.SeekStart)
	return found, err
}
