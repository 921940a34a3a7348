package homes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/aws/audit"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
	"howdah/internal/identity/home"
)

// auditLook is how often --follow looks for new records.
const auditLook = 200 * time.Millisecond

func newAudit(o *cli.Options) *cobra.Command {
	var since time.Duration
	var follow, failed bool
	var key string
	cmd := &cobra.Command{
		Use: "audit", Short: "Show every call of the API: who, what, when, from where, and how it ended", Args: cli.Args(cobra.NoArgs),
		Long: "Shows the audit log of the control plane on this machine: each has its own. Secrets are not in it. With -o json each line " +
			"is a document.",
		Example: "  howdah audit --since 24h --failed\n  howdah audit -f",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return fmt.Errorf("--since is more than 0: %w", cli.ErrUsage)
			}
			h, err := home.Open(o.Home)
			if err != nil {
				return err
			}
			show := func(r audit.Record) error {
				if failed && r.Code == "" || key != "" && r.AccessKey != key {
					return nil
				}
				return auditLine(o, r)
			}
			if follow {
				return audit.Follow(cmd.Context(), h.AuditDir(), auditLook, show)
			}
			return audit.Read(h.AuditDir(), o.Now().Add(-since), show)
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&since, "since", time.Hour, "how far back")
	flags.BoolVarP(&follow, "follow", "f", false, "show new calls as they come, until Ctrl-C")
	flags.BoolVar(&failed, "failed", false, "only calls that were refused or failed")
	flags.StringVar(&key, "key", "", "only calls of this access key")
	return cmd
}

func auditLine(o *cli.Options, r audit.Record) error {
	if o.JSON() {
		return json.NewEncoder(o.Screen.Stdout).Encode(r)
	}
	outcome := o.Screen.Paint(screen.None, "ok")
	if r.Code != "" {
		outcome = o.Screen.Paint(screen.Red, r.Code)
	}
	who := r.User
	switch {
	case who != "":
	case r.ByLink:
		who = "link of " + r.Account
	default:
		who = strings.TrimSpace("unknown " + r.AccessKey)
	}
	action := r.Service + ":" + r.Action
	if r.Action == "" {
		action = "-" // nobody knows what a call asks for that is not signed
	}
	o.Say("%sZ  %s  %s  %s  %s%s", r.Time.UTC().Format(time.DateTime), r.Source, plain(who), plain(action), outcome, auditNames(r))
	if r.Unrecorded > 0 {
		o.Say("  before it, %d calls without a valid signature were not recorded", r.Unrecorded)
	}
	return nil
}

// auditNames returns the parameters that name something.
func auditNames(r audit.Record) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.Parameters)) {
		if strings.HasSuffix(name, "Identifier") || strings.HasSuffix(name, "Name") || r.Service == "howdah" {
			fmt.Fprintf(&text, "  %s=%s", name, plain(r.Parameters[name]))
		}
	}
	return text.String()
}

// plain returns a caller's text without what a terminal would not show as it is.
func plain(value string) string {
	quoted := fmt.Sprintf("%q", value)
	if quoted == `"`+value+`"` {
		return value
	}
	return quoted
}
