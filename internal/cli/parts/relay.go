package parts

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"path/filepath"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
	"howdah/internal/identity/home"
)

// RelayFlags are the flags of a relay for mail. The home remembers them.
type RelayFlags struct {
	set                             *cobra.Command
	relay, from, user, passwordFile string
}

// Add gives a command the flags.
func (r *RelayFlags) Add(cmd *cobra.Command) {
	r.set = cmd
	flags := cmd.Flags()
	flags.StringVar(&r.relay, "smtp", "", `relay for mail to subscribers of topics, as HOST:PORT; the home remembers it; "" takes it away`)
	flags.StringVar(&r.from, "smtp-from", "", "sender of that mail")
	flags.StringVar(&r.user, "smtp-user", "", "user of the relay, if it asks for one")
	flags.StringVar(&r.passwordFile, "smtp-password-file", "", "file with the password of that user")
	cli.CompleteFiles(cmd, "smtp-password-file")
}

var errRelay = errors.New("the relay for mail")

// SMTP returns the relay that was asked for, or nil if no flag was given.
func (r *RelayFlags) SMTP() (*home.SMTP, error) {
	if !r.set.Flags().Changed("smtp") {
		if r.from+r.user+r.passwordFile != "" {
			return nil, fmt.Errorf("%w: --smtp-from, --smtp-user and --smtp-password-file need --smtp: %w", errRelay, cli.ErrUsage)
		}
		return nil, nil
	}
	if r.relay == "" {
		return &home.SMTP{}, nil
	}
	if host, port, err := net.SplitHostPort(r.relay); err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("--smtp %q is not HOST:PORT: %w", r.relay, cli.ErrUsage)
	}
	if _, err := mail.ParseAddress(r.from); err != nil {
		return nil, fmt.Errorf("--smtp needs --smtp-from, an address of mail, not %q: %w", r.from, cli.ErrUsage)
	}
	if (r.user == "") != (r.passwordFile == "") {
		return nil, fmt.Errorf("%w: --smtp-user and --smtp-password-file need each other: %w", errRelay, cli.ErrUsage)
	}
	path := r.passwordFile
	if path != "" {
		var err error
		if path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("--smtp-password-file: %w", err)
		}
	}
	return &home.SMTP{Relay: r.relay, From: r.from, User: r.user, PasswordFile: path}, nil
}
