package homes

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/cli/db"
	"howdah/internal/identity/home"
)

// credentialFlags are the ways to give the access key of a home's operator.
type credentialFlags struct {
	text, file string
	stdin      bool
}

const credentialFlag = "credential"

func (f *credentialFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.text, credentialFlag, "", "access key of the API, as KEY:SECRET[:ACCOUNT] (default: one is made); others may see it for a moment")
	flags.StringVar(&f.file, "credential-file", "", "file with the access key, in the same form")
	flags.BoolVar(&f.stdin, "credential-stdin", false, "read the access key from standard input")
	cli.CompleteFiles(cmd, "credential-file")
}

// read returns the access key, or nil if none was given.
func (f *credentialFlags) read(o *cli.Options, cmd *cobra.Command) (*home.Credential, error) {
	if err := cli.Exclusive(cmd, credentialFlag, "credential-file", "credential-stdin"); err != nil {
		return nil, err
	}
	text, name := f.text, "--"+credentialFlag
	switch {
	case cmd.Flags().Changed("credential-file"):
		file, err := os.Open(f.file)
		if err != nil {
			return nil, fmt.Errorf("read access key: %w", err)
		}
		defer file.Close()
		if text, err = db.ReadLine(file, "access key"); err != nil {
			return nil, err
		}
		name = "--credential-file"
	case f.stdin:
		var err error
		if text, err = db.ReadLine(o.Screen.Stdin, "access key"); err != nil {
			return nil, err
		}
		name = "--credential-stdin"
	case text == "":
		return nil, nil
	}
	c, err := home.ParseCredential(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, err, cli.ErrUsage)
	}
	return &c, nil
}

// inArguments reports whether the access key is among the arguments, where everyone on the machine
// can read it.
func (f *credentialFlags) inArguments() bool { return f.text != "" }

// withoutCredential returns the arguments of a command without the access key.
func withoutCredential(arguments []string) []string {
	var kept []string
	for i := 0; i < len(arguments); i++ {
		switch a := arguments[i]; {
		case a == "--":
			return append(kept, arguments[i:]...)
		case a == "--"+credentialFlag:
			i++ // its value
		case strings.HasPrefix(a, "--"+credentialFlag+"="):
		default:
			kept = append(kept, a)
		}
	}
	return kept
}

// forget replaces this process by the same command with arguments that hold no access key. The home
// has the key by now.
func forget(o *cli.Options) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	if err := o.Exec(program, append([]string{o.Program}, withoutCredential(o.Arguments)...), o.Environ()); err != nil {
		return fmt.Errorf("go on without the access key in the arguments: %w", err)
	}
	return nil
}
