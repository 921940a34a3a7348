package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/model/spec"
)

// CompleteNames completes the names of instances and clusters.
func (o *Options) CompleteNames(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return o.completeFirst(cmd, args, func(status *admin.Status) (names []string) {
		for _, d := range status.Databases {
			names = append(names, d.Name)
			for _, m := range d.Members {
				if m.Instance != "" {
					names = append(names, m.Instance)
				}
			}
		}
		return names
	})
}

// CompleteHosts completes the names of hosts.
func (o *Options) CompleteHosts(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	return o.completeFirst(cmd, args, func(status *admin.Status) (names []string) {
		for _, h := range status.Hosts {
			names = append(names, h.Name)
		}
		return names
	})
}

// completeFirst completes the first argument, and no other, by names that the status has.
func (o *Options) completeFirst(cmd *cobra.Command, args []string, names func(*admin.Status) []string) ([]string, cobra.ShellCompDirective) {
	return CompleteFirst(func(cmd *cobra.Command) ([]string, error) {
		status, err := o.AskStatus(cmd)
		return names(&status), err
	})(cmd, args, "")
}

// CompleteFirst completes the first argument, and no other, by the names that there are.
func CompleteFirst(names func(*cobra.Command) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		all, err := names(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteTargets completes the instances of the cluster that was named.
func (o *Options) CompleteTargets(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	status, err := o.AskStatus(cmd)
	if err != nil || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, d := range status.Databases {
		for _, m := range d.Members {
			if d.Name == args[0] && m.Instance != "" {
				names = append(names, m.Instance)
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteClasses completes the flag --class, and --storage-type beside it if there is one.
func CompleteClasses(cmd *cobra.Command) {
	if cmd.Flags().Lookup("storage-type") != nil {
		Complete(cmd, "storage-type", cobra.FixedCompletions([]string{"gp2", "gp3", "io1", "io2"}, cobra.ShellCompDirectiveNoFileComp))
	}
	Complete(cmd, "class", func(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, c := range spec.Classes() {
			if strings.HasPrefix(c.Name, word) {
				names = append(names, c.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteFiles completes flags that name files.
func CompleteFiles(cmd *cobra.Command, flags ...string) {
	for _, f := range flags {
		Complete(cmd, f, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		})
	}
}

// Complete sets how a flag is completed. The flag must exist.
func Complete(cmd *cobra.Command, flag string, by cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, by); err != nil {
		panic("howdah: " + err.Error())
	}
}
