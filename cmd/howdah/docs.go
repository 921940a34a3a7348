package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"howdah/internal/aws/rds"
	"howdah/internal/cli"
	"howdah/internal/model/extension"
)

// newDocs returns the command that writes the reference of the command line, docs/cli.md.
func newDocs() *cobra.Command {
	return generator("gen-docs", "Write the reference of all commands", reference)
}

// newAPIDocs returns the command that writes the reference of the API, docs/guide/api.md.
func newAPIDocs() *cobra.Command {
	return generator("gen-api", "Write the reference of all actions", func(*cobra.Command) string { return rds.Reference() })
}

// newExtensionDocs returns the command that writes the page of the guide on extensions, and newExtensionList that which
// writes what scripts/install reads.
func newExtensionDocs() *cobra.Command {
	return generator("gen-extensions", "Write the page on extensions", func(*cobra.Command) string { return extension.Guide() })
}

func newExtensionList() *cobra.Command {
	return generator("gen-extension-list", "Write the list of extensions to install", func(*cobra.Command) string { return extension.InstallList() })
}

// generator returns a command that writes a page of the documentation.
func generator(name, short string, page func(root *cobra.Command) string) *cobra.Command {
	return &cobra.Command{
		Use: name + " [FILE]", Short: short, Hidden: true, Args: cli.Args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, files []string) error {
			text := page(cmd.Root())
			if len(files) == 0 {
				_, err := io.WriteString(cmd.OutOrStdout(), text)
				return err
			}
			if err := os.WriteFile(files[0], []byte(text), 0o644); err != nil {
				return fmt.Errorf("write reference: %w", err)
			}
			return nil
		},
	}
}

const referenceIntro = `# Command line

Written by ` + "`howdah gen-docs`" + ` from the program itself: do not edit.

Every command takes ` + "`-o json`" + `: then standard output is one JSON document with stable names. Progress and errors go to standard
error, an error as one line. The exit code is 0 for success, 2 for a mistake in the command line, 3 for a failed ` + "`howdah status --check`" + `,
and 1 for anything else. Colour is used only on a terminal, and not when ` + "`NO_COLOR`" + ` is set.

Commands find Howdah in this order: the home that ` + "`--home` or `HOWDAH_HOME`" + ` names; ` + "`AWS_ENDPOINT_URL`" + ` with
` + "`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and `AWS_CA_BUNDLE`" + `, also from another machine; the home in the usual place.
`

// reference returns the whole text of docs/cli.md.
func reference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(wrapped(referenceIntro))
	b.WriteString("\nFlags of every command:\n\n")
	writeFlags(&b, root.PersistentFlags())
	for _, c := range root.Commands() {
		writeCommand(&b, c)
	}
	return b.String()
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	if c.Hidden || c.Name() == "help" {
		return
	}
	if !c.HasAvailableSubCommands() {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", c.CommandPath(), c.Short)
		if c.Long != "" && c.Name() != "bash" && c.Parent().Name() != "completion" {
			fmt.Fprintf(b, "\n%s\n", wrapped(c.Long))
		}
		fmt.Fprintf(b, "\n    %s\n", c.UseLine())
		if len(c.Aliases) > 0 {
			fmt.Fprintf(b, "\nAlso: %s\n", strings.Join(c.Aliases, ", "))
		}
		if c.LocalNonPersistentFlags().HasAvailableFlags() {
			b.WriteString("\n")
			writeFlags(b, c.LocalNonPersistentFlags())
		}
		if c.Example != "" {
			fmt.Fprintf(b, "\nExamples:\n\n    %s\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n    "))
		}
		return
	}
	for _, sub := range c.Commands() {
		writeCommand(b, sub)
	}
}

// width is that of prose in Markdown.
const width = 100

// wrapped fills the lines of each paragraph up to width. Indented lines and headings stay as they
// are.
func wrapped(text string) string {
	var out []string
	begun := false // the last line of out is prose that goes on
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' || line[0] == '#' {
			out, begun = append(out, line), false
			continue
		}
		for word := range strings.FieldsSeq(line) {
			if last := len(out) - 1; begun && len(out[last])+1+len(word) <= width {
				out[last] += " " + word
			} else {
				out, begun = append(out, word), true
			}
		}
	}
	return strings.Join(out, "\n")
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | default | meaning |\n| --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if kind := f.Value.Type(); kind != "bool" {
			name += " " + kind
		}
		standard := f.DefValue
		if standard == "false" || standard == "0" || standard == "[]" || standard == "0s" {
			standard = ""
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, standard, strings.ReplaceAll(f.Usage, "|", "\\|"))
	})
}
