package lab

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/lab/report"
)

func newCompare(o *cli.Options) *cobra.Command {
	var out, language string
	cmd := &cobra.Command{
		Use: "compare DIR DIR", Short: "Put two results of one experiment side by side",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("lab compare takes the directories of two results: %w", cli.ErrUsage)
			}
			return nil
		},
		Long: "Writes a page with both results: what differs in their environments, their figures in plots and tables, and for which settings " +
			"the runs of one are all above those of the other. As the two were not measured in turns, it cannot tell what was varied from a " +
			"machine that changed meanwhile.",
		Example: "  howdah lab compare before/e1 after/e1 --out before-after",
		RunE: func(_ *cobra.Command, args []string) error {
			languages, err := languagesOf(language)
			if err != nil {
				return err
			}
			found, paths, err := report.Compare(args[0], args[1], out, languages...)
			if err != nil {
				return err
			}
			return o.Print(found, func() error {
				o.Say("%s", strings.Join(paths, "\n"))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", ".", "directory for the pages")
	cmd.Flags().StringVar(&language, "lang", "both", "language of the pages: en, ja or both")
	cli.CompleteFiles(cmd, "out")
	return cmd
}
