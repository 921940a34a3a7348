package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/cmd/howdah/screen"
	"howdah/internal/admin"
	"howdah/internal/admin/client"
)

func newHostDrain(o *options) *cobra.Command {
	var dryRun, noWait bool
	cmd := &cobra.Command{
		Use: "drain NAME", Short: "Move all members off a host", Args: oneName, ValidArgsFunction: o.completeHosts,
		Long: "Moves every member to another host, and waits until the host is empty. A primary moves by an orderly failover, once its " +
			"replacement is in sync. The host gets no members until `howdah host undrain`.",
		Example: "  howdah host drain zone-b --dry-run\n  howdah host drain zone-b",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := o.api(cmd)
			if err != nil {
				return err
			}
			d := drain{options: o, api: api, host: args[0]}
			return d.run(cmd.Context(), dryRun, noWait)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would move where")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return as soon as the request is accepted")
	return cmd
}

type drain struct {
	*options
	api  *client.Client
	host string
}

func (d *drain) run(ctx context.Context, dryRun, noWait bool) error {
	answer, err := d.ask(ctx, dryRun)
	if err != nil {
		return err
	}
	if dryRun || noWait {
		return d.print(answer, func() error { return d.movesText(answer, dryRun) })
	}
	if !d.json() {
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
	return d.print(answer, func() error { d.say("%s is empty", d.host); return nil })
}

// ask asks for the drain, or how far it is: both are the same call.
func (d *drain) ask(ctx context.Context, dryRun bool) (admin.DrainAnswer, error) {
	var out admin.DrainAnswer
	return out, d.api.Admin(ctx, admin.VerbDrain, admin.DrainRequest{Host: d.host, DryRun: dryRun}, &out)
}

// wait waits until the host is empty, or until nothing that is left can move.
func (d *drain) wait(ctx context.Context) (admin.DrainAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	p := d.screen.Begin(d.now)
	defer p.End()
	var answer admin.DrainAnswer
	err := d.poll(ctx, d.host+" to be empty", func() (bool, error) {
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
		text := joinTexts(": ", m.Database, m.Step)
		if m.Step == "" {
			text = m.Database + ": moving " + m.Member
		}
		if moving == 1 {
			p.Step(text, d.now())
		}
	}
	return moving == 0
}

func (d *drain) movesText(a admin.DrainAnswer, dryRun bool) error {
	if len(a.Moves) == 0 {
		d.say("%s has no members", d.host)
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
	return t.Write(d.screen.Stdout, d.screen.Color())
}

func stuckText(moves []admin.Move) string {
	var texts []string
	for _, m := range moves {
		texts = append(texts, m.Database+"/"+m.Member+" stays: "+m.Problem)
	}
	return strings.Join(texts, "; ")
}
