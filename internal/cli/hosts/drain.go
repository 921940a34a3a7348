package hosts

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newHostDrain(o *cli.Options) *cobra.Command {
	var dryRun, noWait bool
	cmd := &cobra.Command{
		Use: "drain NAME", Short: "Move all members off a host", Args: cli.OneName, ValidArgsFunction: o.CompleteHosts,
		Long: "Moves every member to another host, and waits until the host is empty. A primary moves by an orderly failover, once its " +
			"replacement is in sync. The host gets no members until `howdah host undrain`.",
		Example: "  howdah host drain zone-b --dry-run\n  howdah host drain zone-b",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			d := drain{Options: o, api: api, host: args[0]}
			return d.run(cmd.Context(), dryRun, noWait)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would move where")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

type drain struct {
	*cli.Options
	api  *client.Client
	host string
}

func (d *drain) run(ctx context.Context, dryRun, noWait bool) error {
	answer, err := d.ask(ctx, dryRun)
	if err != nil {
		return err
	}
	if dryRun || noWait {
		return d.Print(answer, func() error { return d.movesText(answer, dryRun) })
	}
	if !d.JSON() {
		if err := d.movesText(answer, false); err != nil {
			return err
		}
	}
	if answer, err = d.wait(ctx); err != nil {
		return err
	}
	if len(answer.Moves) > 0 {
		return fmt.Errorf("%s is drained as far as possible: %s", d.host, stuckText(answer.Moves))
	}
	return d.Print(answer, func() error { d.Say("%s is empty", d.host); return nil })
}

// ask asks for the drain, or how far it is: both are the same call.
func (d *drain) ask(ctx context.Context, dryRun bool) (admin.DrainAnswer, error) {
	var out admin.DrainAnswer
	return out, d.api.Admin(ctx, admin.VerbDrain, admin.DrainRequest{Host: d.host, DryRun: dryRun}, &out)
}

// wait waits until the host is empty, or until nothing that is left can move.
func (d *drain) wait(ctx context.Context) (admin.DrainAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.WaitTimeout)
	defer cancel()
	p := d.Screen.Begin(d.Now)
	defer p.End()
	var answer admin.DrainAnswer
	err := d.Poll(ctx, d.host+" to be empty", func() (bool, error) {
		var err error
		if answer, err = d.ask(ctx, true); err != nil {
			return false, err
		}
		if !answer.Draining {
			return false, fmt.Errorf("%s is not being drained any more", d.host)
		}
		return d.showMoves(p, answer.Moves), nil
	})
	return answer, err
}

// showMoves shows how far a drain is. It returns true once nothing more will move.
func (d *drain) showMoves(p *screen.Progress, moves []admin.Move) bool {
	moving := 0
	for _, m := range moves {
		if m.Problem != "" {
			p.Note(m.Database + ": " + m.Problem)
			continue
		}
		moving++
		text := cli.JoinTexts(": ", m.Database, m.Step)
		if m.Step == "" {
			text = m.Database + ": moving " + m.Member
		}
		if moving == 1 {
			p.Step(text, d.Now())
		}
	}
	return moving == 0
}

func (d *drain) movesText(a admin.DrainAnswer, dryRun bool) error {
	if len(a.Moves) == 0 {
		d.Say("%s has no members", d.host)
		return nil
	}
	verb := "moves to"
	if dryRun {
		verb = "would move to"
	}
	var t screen.Table
	t.Head("DATABASE", "MEMBER", "ROLE", strings.ToUpper(verb), "")
	for _, m := range a.Moves {
		note := screen.Cell{Text: m.Problem, Style: screen.Red}
		to := m.To
		if m.Problem != "" {
			to = "stays"
		}
		t.Row(m.Database, m.Member, m.Role, to, note)
	}
	return t.Write(d.Screen.Stdout, d.Screen.Color())
}

func stuckText(moves []admin.Move) string {
	var texts []string
	for _, m := range moves {
		texts = append(texts, m.Database+"/"+m.Member+" stays: "+m.Problem)
	}
	return strings.Join(texts, "; ")
}
