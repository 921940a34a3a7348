package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// maxFile bounds what is read of a file with a secret, a key or a certificate, in bytes.
const maxFile = 1 << 18

// Secret is where the secret of an S3 server's access key comes from: a file, standard input or a variable
// of the environment. It is never an argument.
type Secret struct {
	Variable string // of the environment
	file     string
	stdin    bool
}

// Flags gives a command the flags that say so.
func (s *Secret) Flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.file, "secret-file", "", "file with the secret of the access key")
	flags.BoolVar(&s.stdin, "secret-stdin", false, "read the secret of the access key from standard input; a terminal does not show it")
	CompleteFiles(cmd, "secret-file")
}

// Check refuses two places at once.
func (s *Secret) Check(cmd *cobra.Command) error {
	return Exclusive(cmd, "secret-file", "secret-stdin")
}

// Read reads the secret. It is "" if there is none.
func (s *Secret) Read(o *Options) (secret string, err error) {
	switch {
	case s.file != "":
		secret, err = ReadFile(s.file, "secret")
	case s.stdin && o.Screen.Terminal.In():
		fmt.Fprint(o.Screen.Stderr, "Secret of the access key: ")
		secret, err = o.Screen.Terminal.Secret()
		fmt.Fprintln(o.Screen.Stderr)
	case s.stdin:
		secret, err = ReadAll(o.Screen.Stdin, "secret")
	default:
		secret = o.Getenv(s.Variable)
	}
	return strings.TrimRight(secret, "\r\n"), err
}

// ReadFile reads a small file, which must not be empty. what says for messages what is in it.
func ReadFile(path, what string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	defer file.Close()
	return ReadAll(file, what)
}

// ReadAll is ReadFile for what is open.
func ReadAll(source io.Reader, what string) (string, error) {
	text, err := io.ReadAll(io.LimitReader(source, maxFile))
	if err != nil {
		return "", fmt.Errorf("read %s: %w", what, err)
	}
	if strings.TrimSpace(string(text)) == "" {
		return "", fmt.Errorf("the %s is empty: %w", what, ErrUsage)
	}
	return string(text), nil
}
