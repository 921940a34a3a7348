package homes

import (
	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newEtcd(o *cli.Options) *cobra.Command {
	return cli.Group("etcd", "Look at etcd, which holds the state of the home, and make room in it",
		"etcd takes no writes once its database is as large as its quota (`howdah serve --etcd-quota`), and then nothing can change and no "+
			"failover is possible. Howdah keeps it small by itself. These commands do so now: `mend` does all that helps.",
		newEtcdStatus(o), newEtcdMend(o), newEtcdDeed(o, admin.EtcdCompact, "Forget the history of the state",
			"Forgets the history. Only readers that fell behind need it, and they read everything again. The room that this frees is used "+
				"for what is written next. The file stays as large as it is until `howdah etcd defrag`."),
		newEtcdDefrag(o), newEtcdDeed(o, admin.EtcdDisarm, "End the alarm that stops all writes",
			"Ends the alarm that etcd raises when its quota is used up. It comes back with the next write unless there is room: "+
				"`howdah etcd mend` makes some first."),
	)
}

func newEtcdStatus(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show how full etcd is", Args: cli.Args(cobra.NoArgs), Example: "  howdah etcd status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			var out admin.Status
			if err := api.Admin(cmd.Context(), admin.VerbStatus, admin.Nothing{}, &out); err != nil {
				return err
			}
			return o.Print(out.Etcd, func() error { return etcdTable(o, out.Etcd) })
		},
	}
}

func newEtcdMend(o *cli.Options) *cobra.Command {
	in := admin.EtcdRequest{Do: admin.EtcdMend}
	cmd := &cobra.Command{
		Use: "mend", Short: "Do all that makes room in etcd, one member after the other", Args: cli.Args(cobra.NoArgs),
		Long: "Forgets the history. Then one member after the other gives back what it does not use; a member that leads etcd first hands the " +
			"leadership over. Once there is room, it ends the alarm. A member does not answer during its turn, which takes about a second " +
			"for each 100 MB that it holds. Databases go on.",
		Example: "  howdah etcd mend --dry-run\n  howdah etcd mend",
		RunE:    func(cmd *cobra.Command, _ []string) error { return etcdDo(cmd, o, in) },
	}
	cmd.Flags().BoolVar(&in.DryRun, "dry-run", false, "only say what would be done")
	return cmd
}

func newEtcdDefrag(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "defrag MEMBER", Short: "Have a member of etcd give back what it does not use", Args: cli.Args(cobra.ExactArgs(1)),
		Long:    "Has a member write its database anew, without what it does not use. The member does not answer meanwhile.",
		Example: "  howdah etcd defrag s2",
		RunE: func(cmd *cobra.Command, names []string) error {
			return etcdDo(cmd, o, admin.EtcdRequest{Do: admin.EtcdDefrag, Member: names[0]})
		},
	}
}

func newEtcdDeed(o *cli.Options, do, short, long string) *cobra.Command {
	return &cobra.Command{
		Use: do, Short: short, Long: long, Args: cli.Args(cobra.NoArgs), Example: "  howdah etcd " + do,
		RunE: func(cmd *cobra.Command, _ []string) error { return etcdDo(cmd, o, admin.EtcdRequest{Do: do}) },
	}
}

func etcdDo(cmd *cobra.Command, o *cli.Options, in admin.EtcdRequest) error {
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	var out admin.EtcdAnswer
	if err := api.Admin(cmd.Context(), admin.VerbEtcd, in, &out); err != nil {
		return err
	}
	return o.Print(out, func() error {
		word := "done"
		if in.DryRun {
			word = "would"
		}
		for _, deed := range out.Deeds {
			o.Say("%s  %s", word, deed)
		}
		if len(out.Deeds) == 0 {
			o.Say("There is nothing to do.")
		}
		o.Say("")
		return etcdTable(o, out.Members)
	})
}

func etcdTable(o *cli.Options, members []admin.EtcdMember) error {
	var t screen.Table
	t.Head("MEMBER", "STATE", "IN USE", "FILE", "QUOTA")
	for _, m := range members {
		t.Row(m.Name, etcdState(m), screen.Bytes(m.Bytes), screen.Bytes(m.Size), screen.Bytes(m.Quota))
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

func etcdState(m admin.EtcdMember) screen.Cell {
	text := cli.JoinTexts(", ", cli.Yes(m.Leader, "leader"), cli.Yes(m.Learner, "learner"))
	switch {
	case !m.Healthy:
		return screen.Cell{Text: cli.JoinTexts(": ", "down", m.Error), Style: screen.Red}
	case m.Full:
		return screen.Cell{Text: cli.JoinTexts(", ", "full: takes no writes", text), Style: screen.Red}
	case m.Scarce:
		return screen.Cell{Text: cli.JoinTexts(", ", "nearly full", text), Style: screen.Red}
	}
	return screen.Cell{Text: cli.JoinTexts(", ", "healthy", text), Style: screen.Green}
}
