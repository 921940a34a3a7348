package homes

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/control/restore"
	"howdah/internal/control/serve"
	"howdah/internal/identity/certs"
	"howdah/internal/identity/home"
	"howdah/internal/state/backup"
	"howdah/internal/state/etcd"
	"howdah/internal/state/format"
)

func newHome(o *cli.Options) *cobra.Command {
	return cli.Group("home", "Back the home up, and restore it",
		"A backup of the home holds its etcd, its authority, keys and tokens. With these the databases can be managed again after the control "+
			"plane was lost. It holds no data of databases. Keep it like a private key. `howdah serve --home-backup DIR` takes backups by schedule.",
		newHomeBackup(o), newHomeBackups(o), newHomeRestore(o), newHomeHeld(o), newHomeTakeOver(o),
	)
}

func newHomeBackup(o *cli.Options) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use: "backup DIR", Short: "Take a backup of the home into a directory", Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Takes a backup of the home into a directory, on the machine of a control plane, as the user that runs it. The backup is a " +
			"directory of its own. It appears once it is complete and was read again. Copy it to another machine.",
		Example: "  howdah home backup /mnt/backups",
		RunE: func(cmd *cobra.Command, dirs []string) error {
			h, err := home.Open(o.Home)
			if err != nil {
				return err
			}
			if address == "" {
				address = h.Address(0, 1)
			}
			pair, err := certs.Load(h.CertDir())
			if err != nil {
				return err
			}
			client, err := etcd.Dial(cmd.Context(), []string{"https://" + serve.ClientAddr(address)}, pair)
			if err != nil {
				return err
			}
			defer client.Close()
			b, err := backup.Take(cmd.Context(), dirs[0], backup.Source{Home: h, Snapshot: etcd.Snapshots(client), Version: o.Version, Format: format.Of(client)})
			if err != nil {
				return err
			}
			return o.Print(backupViewOf(b, nil), func() error {
				o.Say("Backup taken: %s (%d keys).", b.Path, b.Keys)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&address, "address", "", "IP address of the control plane's etcd (default: the home's own on loopback)")
	return cmd
}

// backupView is a backup as JSON.
type backupView struct {
	Path  string    `json:"path"`
	Home  string    `json:"home,omitempty"`
	Taken time.Time `json:"taken,omitzero"`
	Keys  int       `json:"keys"`
	Whole bool      `json:"restorable"`
	Error string    `json:"error,omitempty"`
}

func backupViewOf(b backup.Backup, err error) backupView {
	v := backupView{Path: b.Path, Home: b.Home, Taken: b.Taken, Keys: b.Keys, Whole: err == nil}
	if err != nil {
		v.Error = err.Error()
	}
	return v
}

func newHomeBackups(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "backups DIR", Short: "List the backups in a directory, and verify each", Args: cli.Args(cobra.ExactArgs(1)),
		Long:    "Lists the backups in a directory. Each is read in full and compared with its checksums before it is called restorable.",
		Example: "  howdah home backups /mnt/backups",
		RunE: func(_ *cobra.Command, dirs []string) error {
			found, err := backup.List(dirs[0], "")
			if err != nil {
				return err
			}
			views := []backupView{}
			for _, f := range found {
				views = append(views, backupViewOf(f.Backup, f.Err))
			}
			return o.Print(views, func() error {
				var t screen.Table
				t.Head("BACKUP", "HOME", "TAKEN", "KEYS", "STATE")
				for _, v := range views {
					cell := screen.Cell{Text: "restorable", Style: screen.Green}
					if !v.Whole {
						cell = screen.Cell{Text: v.Error, Style: screen.Red}
					}
					t.Row(filepath.Base(v.Path), v.Home, v.Taken.UTC().Format(time.RFC3339), fmt.Sprint(v.Keys), cell)
				}
				return t.Write(o.Screen.Stdout, o.Screen.Color())
			})
		},
	}
}

var errAskRestore = fmt.Errorf("say --dry-run to see what would be done, or --yes to do it: %w", cli.ErrUsage)

func newHomeRestore(o *cli.Options) *cobra.Command {
	var name, address string
	var survivor, replace, dryRun, yes bool
	cmd := &cobra.Command{
		Use: "restore [BACKUP]", Short: "Make the home again from a backup, or from what one member of etcd has", Args: cli.Args(cobra.MaximumNArgs(1)),
		Long: "Makes the home again from a backup. With --survivor it makes the state again from that of this control plane, if all others are lost " +
			"for good. No control plane of the home may run, and no lost one may ever come back with its old state. " +
			"Start `howdah serve` or `howdah up` afterwards. Every database is held as it is until all hosts have said what data they have. Then " +
			"the newest copy leads on (`howdah home held`). No data of databases are deleted. With --replace an existing state is put aside.",
		Example: "  howdah home restore /mnt/backups/howdah-1f2e3d4c-20261123T000000.000Z --dry-run\n" +
			"  howdah home restore --survivor --replace --yes",
		RunE: func(cmd *cobra.Command, paths []string) error {
			switch {
			case survivor == (len(paths) == 1):
				return fmt.Errorf("name a backup, or say --survivor: %w", cli.ErrUsage)
			case dryRun == yes:
				return errAskRestore
			}
			cfg := restore.Config{Dir: o.Home, Name: name, Replace: replace, Version: o.Version, Log: cli.NewLog("restore")}
			if !survivor {
				path, err := filepath.Abs(paths[0])
				if err != nil {
					return fmt.Errorf("find the backup: %w", err)
				}
				cfg.Backup = path
			}
			return restoreHome(cmd, o, cfg, address, dryRun)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&name, "name", "s1", "name of the control plane, as `howdah serve --name` will have it")
	flags.StringVar(&address, "address", "", "its IP address, as `howdah serve --address` will have it (default: the home's own on loopback)")
	flags.BoolVar(&survivor, "survivor", false, "restore from the state of this control plane, if all others are lost for good")
	flags.BoolVar(&replace, "replace", false, "put an existing state aside")
	flags.BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	flags.BoolVar(&yes, "yes", false, "do it")
	return cmd
}

func restoreHome(cmd *cobra.Command, o *cli.Options, cfg restore.Config, address string, dryRun bool) error {
	p, err := restore.Check(cfg)
	if errors.Is(err, restore.ErrState) {
		return fmt.Errorf("%w: say --replace to have it put aside as %s", err, p.Aside)
	}
	if err != nil {
		return err
	}
	if address == "" {
		address = p.Network + ".0.1"
	}
	if net.ParseIP(address) == nil {
		return fmt.Errorf("--address is an IP address: %w", cli.ErrUsage)
	}
	cfg.PeerAddr = serve.PeerAddr(address)
	word := "would be"
	if !dryRun {
		word = "was"
		if p, err = restore.Run(cmd.Context(), cfg); err != nil {
			return err
		}
	}
	return o.Print(p, func() error {
		o.Say("The home %s %s restored from %s, as it was at %s.", p.Home, word, p.From, p.Taken.UTC().Format(time.RFC3339))
		if p.Aside != "" {
			o.Say("The state that is there %s put aside as %s.", word, p.Aside)
		}
		if !dryRun {
			o.Say("%d databases wait to be taken over. Start the control plane, then see `howdah home held`.", p.Held)
			for _, r := range p.Missing {
				o.Say("The repository %s is not here: bring its files back to %s, or put a link to them there. Then: %s",
					r.Repository, r.Path, o.Pasteable("howdah repository check "+r.Repository))
			}
		}
		return nil
	})
}

func newHomeHeld(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "held", Short: "Show what data hosts have since the home was restored", Args: cli.Args(cobra.NoArgs),
		Long: "Shows what data hosts have since the home was restored: data of databases that wait to be taken over, and of databases that the home " +
			"does not know, because they were made after the backup.",
		Example: "  howdah home held",
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			var out admin.Held
			if err := api.Admin(cmd.Context(), admin.VerbHeld, admin.Nothing{}, &out); err != nil {
				return err
			}
			return o.Print(out, func() error { return heldTable(o, out) })
		},
	}
}

func heldTable(o *cli.Options, out admin.Held) error {
	if !out.Restored {
		o.Say("This home was never restored.")
		return nil
	}
	o.Say("Restored from %s, as it was at %s.", out.From, out.Taken)
	if len(out.Missing) > 0 {
		o.Say("Did not say yet what they have: %s.", cli.JoinTexts(", ", out.Missing...))
	}
	var t screen.Table
	t.Head("DATABASE", "STATE", "COPY", "RUNS", "TIMELINE", "LSN", "DETAIL")
	for _, c := range out.Copies {
		state := screen.Cell{Text: "taken over", Style: screen.Green}
		switch {
		case c.Held:
			state = screen.Cell{Text: "held: " + c.Why, Style: screen.Red}
		case !c.Known:
			state = screen.Cell{Text: "not known", Style: screen.Red}
		}
		role := cli.Yes(c.Running, "as standby")
		if c.Primary {
			role = cli.Yes(c.Running, "as primary")
		}
		t.Row(c.Database, state, c.Copy, role, fmt.Sprint(c.Timeline), c.LSN, c.Detail)
	}
	return t.Write(o.Screen.Stdout, o.Screen.Color())
}

func newHomeTakeOver(o *cli.Options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "take-over DATABASE HOST/MEMBER", Short: "Have a copy of a held database lead on, whatever others there are", Args: cli.Args(cobra.ExactArgs(2)),
		Long: "Use this for a database that waits to be taken over since the home was restored. The copy leads on, without waiting for hosts that did " +
			"not answer. Acknowledged writes that only another copy has are lost: the other copies are made copies of this one.",
		Example: "  howdah home take-over orders zone-b/m2 --yes",
		RunE: func(cmd *cobra.Command, names []string) error {
			if !yes {
				return fmt.Errorf("writes that only another copy has are lost by this: say --yes to do it: %w", cli.ErrUsage)
			}
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			in := admin.TakeOverRequest{Database: names[0], Copy: names[1]}
			if err := api.Admin(cmd.Context(), admin.VerbTakeOver, in, &admin.Nothing{}); err != nil {
				return err
			}
			return o.Print(in, func() error {
				o.Say("%s is to lead %s: see `howdah status`.", in.Copy, in.Database)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}
