package main

import (
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"howdah/internal/home"
)

func newEnv(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print what the AWS CLI and SDKs need: eval \"$(howdah env)\"",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := home.Open(o.home)
			if err != nil {
				return err
			}
			credentials, err := h.Credentials()
			if err != nil {
				return err
			}
			c := credentials[0]
			for _, pair := range [][2]string{
				{"AWS_ENDPOINT_URL", "https://" + clientAddr(h.Listen)},
				{"AWS_ACCESS_KEY_ID", c.AccessKey},
				{"AWS_SECRET_ACCESS_KEY", c.Secret},
				{"AWS_DEFAULT_REGION", h.Region},
				{"AWS_REGION", h.Region},
				{"AWS_CA_BUNDLE", h.CAFile()},
				{"AWS_PAGER", ""},
				{"PGSSLROOTCERT", h.CAFile()},
				{"HOWDAH_HOME", h.Dir},
			} {
				fmt.Fprintf(cmd.OutOrStdout(), "export %s=%s\n", pair[0], shellQuote(pair[1]))
			}
			fmt.Fprintln(cmd.OutOrStdout(), "unset AWS_PROFILE AWS_SESSION_TOKEN")
			return nil
		},
	}
}

// clientAddr is where clients on this machine reach a listening address.
func clientAddr(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// shellQuote makes a word that every POSIX shell reads back as it is.
func shellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
