package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/lab/book"
)

// logName is what a run in the background says, in its directory.
const logName = "lab.log"

var (
	errEnded  = errors.New("the run is at its end")
	errBroken = errors.New("the run was broken off")
	errBegin  = errors.New("the run did not begin in the background")
)

func listRuns(o *cli.Options) error {
	all, err := book.Of(o.Home).List()
	if err != nil {
		return err
	}
	if all == nil {
		all = []book.Status{}
	}
	return o.Print(all, func() error {
		var t screen.Table
		t.Head("RUN", "STATE", "EXPERIMENTS", "TARGET", "BEGAN", "PROGRESS", "DIRECTORY")
		for _, s := range all {
			t.Row(s.ID, string(s.State), joined(s.Experiments), s.Target, s.Began.UTC().Format(time.DateTime), farOf(s), s.Dir)
		}
		return t.Write(o.Screen.Stdout, o.Screen.Color())
	})
}

// atMostOne takes the ID of a run, or nothing for the newest.
func atMostOne(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("give one run, or none for the newest: %w", cli.ErrUsage)
	}
	return nil
}

func completeRuns(o *cli.Options) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		all, err := book.Of(o.Home).List()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, s := range all {
			ids = append(ids, s.ID+"\t"+joined(s.Experiments)+", "+string(s.State))
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}

func findRun(o *cli.Options, args []string) (book.Status, error) {
	id := ""
	if len(args) == 1 {
		id = args[0]
	}
	return book.Of(o.Home).Find(id)
}

func newWatch(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "watch [RUN]", Short: "Show how far a run is, until it ends", Args: cli.Args(atMostOne), ValidArgsFunction: completeRuns(o),
		Long: "Shows how far a run is that goes on in the background or elsewhere: the newest one, if none is named. It may be left at any " +
			"time; the run goes on.",
		Example: "  howdah lab watch",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := findRun(o, args)
			if err != nil {
				return err
			}
			return watch(cmd.Context(), o, s)
		},
	}
}

func watch(ctx context.Context, o *cli.Options, s book.Status) error {
	progress := o.Screen.Begin(o.Now)
	defer progress.End()
	for s.State == book.Running {
		progress.Step("run "+s.ID, s.Began)
		progress.Far(farOf(s))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(o.Every):
		}
		var err error
		if s, err = book.Of(o.Home).Find(s.ID); err != nil {
			return err
		}
	}
	progress.End()
	if s.State != book.Ended {
		why := s.Progress.Problem
		if why == "" {
			why = string(s.State)
		}
		return fmt.Errorf("%w: %s. Go on with it: %s lab resume %s", errBroken, why, o.Program, s.ID)
	}
	return o.Print(s, func() error {
		o.Say("the run %s has ended: its reports are in %s", s.ID, s.Dir)
		return nil
	})
}

func newResume(o *cli.Options) *cobra.Command {
	var detach, again bool
	cmd := &cobra.Command{
		Use: "resume [RUN]", Short: "Go on with a run that was broken off", Args: cli.Args(atMostOne), ValidArgsFunction: completeRuns(o),
		Long: "Goes on with a run that was broken off, at the next setting: the newest run, if none is named. It takes the flags that the run " +
			"was begun with. What came from " + targetVariable + " has to be there again. With --again it also makes points once more that did " +
			"not count, also of a run that has ended; they stay in the result.",
		Example: "  howdah lab resume\n  howdah lab resume 20261127-020405 --detach\n  howdah lab resume --again",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.Exclusive(cmd, "again", "detach"); err != nil {
				return err
			}
			s, err := findRun(o, args)
			switch {
			case err != nil:
				return err
			case s.State == book.Running:
				return fmt.Errorf("%s: %w: see %s lab watch %s", s.ID, book.ErrBusy, o.Program, s.ID)
			case s.State == book.Ended && !again:
				return fmt.Errorf("%s: %w: its reports are in %s", s.ID, errEnded, s.Dir)
			case s.State == book.Gone:
				return fmt.Errorf("%s: %w: its directory %s is gone", s.ID, errEnded, s.Dir)
			case detach:
				return goOn(cmd, o, s.Run)
			}
			return resume(cmd, o, s, again)
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "go on in the background")
	cmd.Flags().BoolVar(&again, "again", false, "make points once more that did not count")
	return cmd
}

// resume makes what is missing of a run, with the flags that it was begun with; again: also what did not
// count.
func resume(cmd *cobra.Command, o *cli.Options, s book.Status, again bool) error {
	begun, f := newRunWith()
	if err := begun.ParseFlags(s.Arguments); err != nil {
		return fmt.Errorf("the run %s: %w", s.ID, err)
	}
	if err := healAll(cmd.Context(), book.Of(o.Home)); err != nil {
		return err
	}
	m, all, err := f.begin(cmd, o, s.Experiments)
	if err != nil {
		return err
	}
	defer m.flags.remove()
	if err := sameTarget(s.Run, m.entry.Target); err != nil {
		return err
	}
	m.entry, m.progress = s.Run, s.Progress
	for n := range all {
		all[n].Again = again
	}
	return m.make(cmd.Context(), all)
}

// goOn has a program of its own make a run in the background, and waits until it does.
func goOn(by *cobra.Command, o *cli.Options, r book.Run) error {
	ctx := by.Context()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	path := filepath.Join(r.Dir, logName)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("keep what a run in the background says: %w", err)
	}
	defer log.Close()
	args := []string{"lab", "resume", r.ID}
	if by.Flags().Changed("home") { // a home that is named is preferred to what the environment says
		args = append(args, "--home", o.Home)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // our own program
	cmd.Env = os.Environ()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says why it ended
		close(ended)
	}()
	for {
		s, err := book.Of(o.Home).Find(r.ID)
		if err != nil {
			return err
		}
		if s.State == book.Running || s.State == book.Ended {
			return o.Print(s, func() error {
				o.Say("the run %s goes on in the background: %s lab watch %s", r.ID, o.Program, r.ID)
				return nil
			})
		}
		select {
		case <-ended:
			return fmt.Errorf("%w: %s", errBegin, lastLine(path))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(o.Every / 10):
		}
	}
}

// lastLine is what a log says last.
func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "see " + path
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
