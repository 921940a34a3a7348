package db

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/cli/pgpass"
	"howdah/internal/identity/home"
)

// maxSecret bounds how many bytes are read of a secret. RDS takes passwords of 128 characters.
const maxSecret = 4096

// passwordFlags are the ways to give a password: never as an argument, which
// everyone on the machine could see.
type passwordFlags struct {
	file  string
	stdin bool
}

func (f *passwordFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.file, "password-file", "", "file with the master user's password")
	cmd.Flags().BoolVar(&f.stdin, "password-stdin", false, "read the master user's password from standard input; a terminal does not show it")
	cli.CompleteFiles(cmd, "password-file")
}

func (f *passwordFlags) given() bool { return f.file != "" || f.stdin }

// read returns the password, or "" if none was given.
func (f *passwordFlags) read(o *cli.Options, cmd *cobra.Command) (string, error) {
	if err := cli.Exclusive(cmd, "password-file", "password-stdin"); err != nil {
		return "", err
	}
	if !f.given() {
		return "", nil
	}
	source := o.Screen.Stdin
	switch {
	case f.stdin && o.Screen.Terminal.In():
		fmt.Fprint(o.Screen.Stderr, "Password of the master user: ")
		line, err := o.Screen.Terminal.Secret()
		fmt.Fprintln(o.Screen.Stderr)
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		source = strings.NewReader(line)
	case f.file != "":
		file, err := os.Open(f.file)
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		defer file.Close()
		source = file
	}
	password, err := ReadLine(source, "password")
	if err == nil && password == "" {
		err = fmt.Errorf("the password is empty: %w", cli.ErrUsage)
	}
	return password, err
}

// ReadLine reads a secret, such as a password, without the end of its line.
func ReadLine(source io.Reader, what string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(source, maxSecret))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// Passwords is the home's password file.
func Passwords(h *home.Home) pgpass.File {
	return pgpass.File{Path: h.DemoPassFile(), Lock: filepath.Join(h.Dir, "run", "pgpass.lock")}
}

// prunePasswords drops the passwords of databases that no longer exist, because their addresses are
// used again. Those of databases that went back in their place stay.
func prunePasswords(ctx context.Context, api *client.Client, h *home.Home) error {
	var status admin.Status
	if err := api.Admin(ctx, admin.VerbStatus, admin.Nothing{}, &status); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, d := range status.Databases {
		known[d.ResourceID] = true
		for _, id := range d.Replaced { // it has the same address, and the same password
			if err := Passwords(h).Move(id, d.ResourceID); err != nil {
				return err
			}
		}
	}
	return Passwords(h).Keep(func(id string) bool { return known[id] })
}
