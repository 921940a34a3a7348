package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"howdah/api/rds"
)

// deleteFlags are those of `howdah db delete`.
type deleteFlags struct {
	yes, skipSnapshot, noWait bool
	snapshot                  string
}

func newDBDelete(o *options) *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "Delete a DB instance or a DB cluster with all its data", Args: oneName,
		Aliases: []string{"rm", "remove", "drop"}, ValidArgsFunction: o.completeNames,
		Long: "Deletes a database and all its data, for good. On a terminal it asks for the name again; anywhere else it needs " +
			"--yes. As in RDS, it takes --skip-final-snapshot or the name of a final snapshot; replicas and instances of a cluster " +
			"need neither.",
		Example: "  howdah db delete orders --skip-final-snapshot\n  howdah db delete orders --skip-final-snapshot --yes",
		RunE:    func(cmd *cobra.Command, args []string) error { return runDBDelete(cmd, o, args[0], &f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.skipSnapshot, "skip-final-snapshot", false, "keep no snapshot of the data")
	flags.StringVar(&f.snapshot, "final-snapshot", "", "name of the snapshot to take first")
	flags.BoolVar(&f.noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

func runDBDelete(cmd *cobra.Command, o *options, name string, f *deleteFlags) error {
	if err := exclusive(cmd, "skip-final-snapshot", "final-snapshot"); err != nil {
		return err
	}
	ctx := cmd.Context()
	api, h, err := o.connect(cmd)
	if err != nil {
		return err
	}
	t, err := find(ctx, api, name)
	if err != nil {
		return err
	}
	if err := f.check(cmd, &t); err != nil {
		return err
	}
	if !f.yes {
		question := fmt.Sprintf("This deletes the %s %s and all its data. Type its name to go on: ", t.kind(), t.name)
		if err := o.confirm(question, t.name); err != nil {
			return err
		}
	}
	if err := t.delete(ctx, f, given(cmd, "final-snapshot", f.snapshot)); err != nil {
		return err
	}
	if !f.noWait {
		if err := o.waitFor(ctx, &t, gone); err != nil {
			return err
		}
		if h != nil {
			if err := prunePasswords(ctx, api, h); err != nil {
				return err
			}
		}
	} else if err := t.refresh(ctx); err != nil {
		return err
	}
	v := viewOf(&t)
	return o.print(v, func() error { o.say("%s is %s", v.Name, v.Status); return nil })
}

// check refuses flags that RDS would refuse, in words of the command line, before anyone is asked
// to confirm.
func (f *deleteFlags) check(cmd *cobra.Command, t *target) error {
	if err := exclusive(cmd, "skip-final-snapshot", "final-snapshot"); err != nil {
		return err
	}
	v := viewOf(t)
	if v.Cluster != "" || v.Follows != "" || f.skipSnapshot || f.snapshot != "" {
		return nil
	}
	return fmt.Errorf("the data of %s go for good: give --skip-final-snapshot, or --final-snapshot NAME: %w", t.name, errUsage)
}

func (t *target) delete(ctx context.Context, f *deleteFlags, snapshot *string) error {
	skip := &f.skipSnapshot
	if !f.skipSnapshot {
		skip = nil
	}
	if t.cluster != nil {
		return t.api.RDS(ctx, "DeleteDBCluster", &rds.DeleteDBClusterMessage{
			DBClusterIdentifier: &t.name, SkipFinalSnapshot: skip, FinalDBSnapshotIdentifier: snapshot,
		}, &rds.DeleteDBClusterResult{})
	}
	return t.api.RDS(ctx, "DeleteDBInstance", &rds.DeleteDBInstanceMessage{
		DBInstanceIdentifier: &t.name, SkipFinalSnapshot: skip, FinalDBSnapshotIdentifier: snapshot,
	}, &rds.DeleteDBInstanceResult{})
}

// confirm asks a person to type a word. It returns an error if no person is there, or if the person
// types something else.
func (o *options) confirm(question, word string) error {
	if !o.screen.Terminal.In() {
		return fmt.Errorf("this cannot be undone, and nobody is here to ask: give --yes: %w", errUsage)
	}
	fmt.Fprint(o.screen.Stderr, question)
	answer, err := bufio.NewReader(io.LimitReader(o.screen.Stdin, 1024)).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read answer: %w", err)
	}
	if strings.TrimSpace(answer) != word {
		return fmt.Errorf("that is not %q: nothing was done", word)
	}
	return nil
}
