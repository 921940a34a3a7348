package hosts

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/model/operation"
)

// operationsLimit is how many operations that have ended are listed.
const operationsLimit = 20

func newOperations(o *cli.Options) *cobra.Command {
	list := newOperationsList(o)
	cmd := cli.Group("operations", "List, show and cancel operations: what takes minutes or hours",
		"An operation is work on a database that takes minutes or hours, step by step. It goes on whatever becomes of a control plane. "+
			"Without a command it lists them.",
		list, newOperationsShow(o), newOperationsCancel(o),
	)
	cmd.Aliases = []string{"operation"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return cli.UnknownCommand(cmd, args[0])
		}
		return list.RunE(cmd, nil)
	}
	// The group takes the same flags as its list.
	cmd.Flags().AddFlagSet(list.Flags())
	cmd.DisableFlagsInUseLine = false
	return cmd
}

func newOperationsList(o *cli.Options) *cobra.Command {
	var limit int
	var watch bool
	cmd := &cobra.Command{
		Use: "list [NAME]", Short: "List operations, of all databases or one: those under way, then the newest that have ended",
		Args: cli.Args(cobra.MaximumNArgs(1)), Aliases: []string{"ls"}, ValidArgsFunction: o.CompleteNames,
		Example: "  howdah operations\n  howdah operations list orders --watch",
		RunE: func(cmd *cobra.Command, names []string) error {
			if limit < 0 {
				return fmt.Errorf("--limit cannot be negative: %w", cli.ErrUsage)
			}
			in := admin.OperationsRequest{Name: strings.Join(names, ""), Limit: limit}
			return again(cmd, o, watch, func() (bool, error) {
				all, err := operations(cmd, o, in)
				if err != nil {
					return false, err
				}
				return false, o.Print(all, func() error { return operationsTable(o, all) })
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", operationsLimit, "how many of those that have ended; 0: all")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every second, until Ctrl-C")
	return cmd
}

func newOperationsShow(o *cli.Options) *cobra.Command {
	var watch bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show an operation: its step, how far it is, and why it waits", Args: cli.OneName,
		ValidArgsFunction: completeOperations(o), Example: "  howdah operations show copy-17 --watch",
		RunE: func(cmd *cobra.Command, ids []string) error {
			return again(cmd, o, watch, func() (bool, error) {
				all, err := operations(cmd, o, admin.OperationsRequest{ID: ids[0]})
				if err != nil {
					return false, err
				}
				if len(all) != 1 {
					return false, fmt.Errorf("%d operations have the id %s", len(all), ids[0])
				}
				return all[0].Ended, o.Print(all[0], func() error { return operationText(o, all[0]) })
			})
		},
	}
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every second, until it has ended")
	return cmd
}

func newOperationsCancel(o *cli.Options) *cobra.Command {
	var abandon, yes bool
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Cancel an operation, and have what it did undone", Args: cli.OneName,
		Long: "Cancels an operation: its current step ends, and all that it did is undone, step by step. If that cannot succeed, as " +
			"on a host that is gone for good, use --abandon: it ends the operation at once, and leaves what it made as it is.",
		ValidArgsFunction: completeOperations(o), Example: "  howdah operations cancel copy-17\n  howdah operations cancel copy-17 --abandon --yes",
		RunE: func(cmd *cobra.Command, ids []string) error {
			return cancelOperation(cmd, o, admin.OperationCancelRequest{ID: ids[0], Abandon: abandon}, yes)
		},
	}
	cmd.Flags().BoolVar(&abandon, "abandon", false, "end it at once, and leave what it made as it is")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

func cancelOperation(cmd *cobra.Command, o *cli.Options, in admin.OperationCancelRequest, yes bool) error {
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	all, err := operations(cmd, o, admin.OperationsRequest{ID: in.ID})
	if err != nil {
		return err
	}
	if !yes && len(all) == 1 {
		what := "undoes what it did"
		if in.Abandon {
			what = "leaves what it made as it is"
		}
		question := fmt.Sprintf("This cancels the operation %s (%s) of %s, and %s. Type its id to go on: ", in.ID, all[0].Kind, all[0].Database, what)
		if err := o.Confirm(question, in.ID); err != nil {
			return err
		}
	}
	var out admin.Operation
	if err := api.Admin(cmd.Context(), admin.VerbOperationCancel, in, &out); err != nil {
		return err
	}
	return o.Print(out, func() error {
		o.Say("%s is being cancelled: howdah operations show %s --watch", out.ID, out.ID)
		return nil
	})
}

func operations(cmd *cobra.Command, o *cli.Options, in admin.OperationsRequest) ([]admin.Operation, error) {
	api, err := o.API(cmd)
	if err != nil {
		return nil, err
	}
	var out admin.OperationsAnswer
	err = api.Admin(cmd.Context(), admin.VerbOperations, in, &out)
	return out.Operations, err
}

// again shows something once. With watch it shows it every second, until it is over or nobody looks
// any more.
func again(cmd *cobra.Command, o *cli.Options, watch bool, show func() (over bool, err error)) error {
	for {
		if watch {
			fmt.Fprint(o.Screen.Stdout, o.Screen.Clear())
		}
		over, err := show()
		if watch && cmd.Context().Err() != nil {
			return cli.Stopped(cmd.Context(), err)
		}
		if watch && errors.Is(err, client.ErrUnreachable) {
			o.Say("%s", cli.OneLine(err)) // it may be started again
		} else if !watch || over || err != nil {
			return err
		}
		select {
		case <-cmd.Context().Done():
			return nil
		case <-time.After(watchEvery):
		}
	}
}

func operationsTable(o *cli.Options, all []admin.Operation) error {
	if len(all) == 0 {
		o.Say("No operations.")
		return nil
	}
	var t screen.Table
	t.Head("ID", "KIND", "DATABASE", "STATE", "STEP", "PROGRESS", "BEGAN", "TOOK")
	for _, p := range all {
		t.Row(p.ID, p.Kind, p.Database, screen.Cell{Text: operationState(p), Style: operationStyle(p)}, p.Step, progressText(p),
			p.Began.UTC().Format(time.DateTime)+"Z", screen.Span(lasted(o, p)))
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

// lasted is how long an operation took, or takes until now.
func lasted(o *cli.Options, p admin.Operation) time.Duration {
	if p.Ended {
		return p.EndedAt.Sub(p.Began)
	}
	return o.Now().Sub(p.Began)
}

func operationState(p admin.Operation) string {
	cancelling := p.Cancelling && p.State == "running"
	return cli.JoinTexts(", ", p.State, cli.Yes(cancelling, "to be cancelled"), cli.Yes(p.Late, "late"))
}

func operationStyle(p admin.Operation) screen.Style {
	switch {
	case p.Late || p.State == "failed":
		return screen.Red
	case p.State == "done":
		return screen.Green
	}
	return screen.Yellow
}

func progressText(p admin.Operation) string { return farText(p.Done, p.Of, p.Unit) }

// jobText says how far a host is with what it does for an operation.
func jobText(o *cli.Options, j admin.OperationJob) string {
	since := ""
	if !j.Said.IsZero() {
		since = "said " + screen.Span(o.Now().Sub(j.Said)) + " ago"
	}
	return cli.JoinTexts(", ", j.Kind+": "+j.State, farText(j.Done, j.Of, j.Unit), j.Detail, since)
}

// farText says how much of something is done; a unit of "" is none.
func farText(done, of int64, unit string) string {
	if unit == "" {
		return ""
	}
	if rest, is := strings.CutPrefix(unit, operation.Parts); is && of > 0 {
		return fmt.Sprintf("%d%%%s", 100*done/of, rest)
	}
	number := func(n int64) string { return fmt.Sprint(n) }
	if rest, is := strings.CutPrefix(unit, "bytes"); is {
		number, unit = screen.Bytes, strings.TrimSpace(rest) // such as "of files"
	}
	if of == 0 {
		return strings.TrimSpace(number(done) + " " + unit)
	}
	return fmt.Sprintf("%s (%d%%)", strings.TrimSpace(number(done)+" of "+number(of)+" "+unit), int64(100*float64(done)/float64(of)))
}

func operationText(o *cli.Options, p admin.Operation) error {
	o.Say("%s  %s of %s", o.Screen.Paint(screen.Bold, p.ID), p.Kind, p.Database)
	at := func(moment time.Time) string {
		if moment.IsZero() {
			return ""
		}
		return moment.UTC().Format(time.DateTime) + "Z"
	}
	t := screen.Table{Indent: "  "}
	lines := [][2]string{
		{"state", operationState(p)},
		{"step", cli.JoinTexts(", since ", p.Step, at(p.StepBegan))},
		{"progress", progressText(p)},
		{"waits until", at(p.Next)},
		{"trouble", cli.JoinTexts(", ", p.Trouble, failuresText(p.Failures))},
		{"reason", p.Reason},
		{"left behind", strings.Join(p.Left, ", ")},
		{"holds up", strings.Join(p.Excludes, ", ")},
		{"began", at(p.Began)},
		{"deadline", at(p.Deadline)},
		{"ended", cli.JoinTexts(", after ", at(p.EndedAt), cli.Yes(p.Ended, screen.Span(lasted(o, p))))},
		{"carried out by", p.By},
	}
	for _, j := range p.Jobs {
		lines = append(lines, [2]string{"on host " + j.Host, jobText(o, j)})
	}
	for _, line := range lines {
		if line[1] != "" {
			t.Row(screen.Cell{Text: line[0], Style: screen.Dim}, line[1])
		}
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

func failuresText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 failure"
	}
	return fmt.Sprintf("%d failures in a row", n)
}

// completeOperations completes the ids of operations.
func completeOperations(o *cli.Options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := operations(cmd, o, admin.OperationsRequest{Limit: operationsLimit})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var ids []string
		for _, p := range all {
			ids = append(ids, p.ID)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
