package homes

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/cli"
	"howdah/internal/cli/screen"
)

func newKey(o *cli.Options) *cobra.Command {
	key := cli.Group("key", "Make, list and delete access keys of the API",
		"Clients sign their calls with access keys. Each key belongs to an account, and may be limited: to reading, or by a policy "+
			"in IAM's JSON form.",
		newKeyCreate(o), newKeyList(o), newKeyDelete(o),
	)
	key.Aliases = []string{"keys"}
	return key
}

func newKeyCreate(o *cli.Options) *cobra.Command {
	var in admin.KeyCreateRequest
	var policy string
	cmd := &cobra.Command{
		Use: "create", Short: "Make an access key, and show its secret this once", Args: cli.Args(cobra.NoArgs),
		Long: "Makes an access key. Its secret is shown now and never again. Without limits the key may do everything in its account; " +
			"with --read-only and --policy, both must allow.",
		Example: "  howdah key create --name ci --policy ci.json\n  howdah key create --account 123456789012 --read-only -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("policy") {
				text, err := readPolicy(policy)
				if err != nil {
					return err
				}
				in.Policy = &text
			}
			return createKey(cmd, o, in)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Account, "account", "", "account that the key is for, twelve digits (default: the home's)")
	flags.StringVar(&in.Name, "name", "", "name of the key's user, for messages and the audit log (default: the access key)")
	flags.BoolVar(&in.ReadOnly, "read-only", false, "the key may only look")
	flags.StringVar(&policy, "policy", "", "file with a policy in IAM's JSON form")
	cli.CompleteFiles(cmd, "policy")
	return cmd
}

// readPolicy reads a policy from a file. It refuses an empty file: a file that was not written yet
// must not lead to a key that may do everything.
func readPolicy(file string) (string, error) {
	if file == "" {
		return "", errors.New("--policy names no file: name one, or leave --policy away for a key without limits")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read policy: %w", err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", fmt.Errorf("read policy: %s is empty, which allows nothing: write a policy to it, or leave --policy away for a key without limits", file)
	}
	return string(text), nil
}

func createKey(cmd *cobra.Command, o *cli.Options, in admin.KeyCreateRequest) error {
	api, err := o.API(cmd)
	if err != nil {
		return err
	}
	var out admin.KeyCreateAnswer
	if err := api.Admin(cmd.Context(), admin.VerbKeyCreate, in, &out); err != nil {
		return err
	}
	return o.Print(out, func() error {
		o.Say("access key  %s\nsecret      %s\naccount     %s\nname        %s", out.AccessKey, out.Secret, out.Account, out.Name)
		o.Say("\nKeep the secret now: it cannot be shown again.")
		return nil
	})
}

func newKeyList(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List access keys, without their secrets", Args: cli.Args(cobra.NoArgs), Aliases: []string{"ls"}, Example: "  howdah key list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			keys, err := keys(cmd, o)
			if err != nil {
				return err
			}
			return o.Print(keys, func() error {
				var t screen.Table
				t.Head("ACCESS KEY", "ACCOUNT", "NAME", "MAY", "CREATED")
				for _, k := range keys {
					t.Row(k.AccessKey, k.Account, k.Name, mayOf(k), createdOf(k))
				}
				return t.Write(o.Screen.Stdout, o.Screen.Color())
			})
		},
	}
}

func keys(cmd *cobra.Command, o *cli.Options) ([]admin.Key, error) {
	api, err := o.API(cmd)
	if err != nil {
		return nil, err
	}
	var out admin.KeyListAnswer
	return out.Keys, api.Admin(cmd.Context(), admin.VerbKeyList, admin.Nothing{}, &out)
}

func mayOf(k admin.Key) string {
	switch {
	case k.OfHome:
		return "everything, also to the home"
	case k.ReadOnly && k.Policy != "":
		return "read, by its policy"
	case k.ReadOnly:
		return "read"
	case k.Policy != "":
		return "by its policy"
	}
	return "everything"
}

func createdOf(k admin.Key) string {
	if k.Created == nil {
		return "with the home"
	}
	return k.Created.UTC().Format(time.DateTime) + "Z"
}

func newKeyDelete(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "delete ACCESS-KEY", Short: "Delete an access key", Args: cli.OneName, Aliases: []string{"rm"}, ValidArgsFunction: completeKeys(o),
		Long:    "Deletes an access key: calls that it signs are refused from then on. The home's own keys are in its file credentials.json.",
		Example: "  howdah key delete HOWDAH0123456789ABCD",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := o.API(cmd)
			if err != nil {
				return err
			}
			if err := api.Admin(cmd.Context(), admin.VerbKeyDelete, admin.KeyRequest{AccessKey: args[0]}, &admin.Nothing{}); err != nil {
				return err
			}
			return o.Print(keyView{AccessKey: args[0], Deleted: true}, func() error { o.Say("%s is deleted", args[0]); return nil })
		},
	}
}

// keyView is the answer of key delete.
type keyView struct {
	AccessKey string `json:"access_key"`
	Deleted   bool   `json:"deleted"`
}

// completeKeys completes the access keys that can be deleted.
func completeKeys(o *cli.Options) cobra.CompletionFunc {
	return cli.CompleteFirst(func(cmd *cobra.Command) (names []string, err error) {
		all, err := keys(cmd, o)
		for _, k := range all {
			if !k.OfHome {
				names = append(names, k.AccessKey)
			}
		}
		return names, err
	})
}
