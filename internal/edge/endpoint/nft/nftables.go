package nft

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// commandTime bounds one call of nft. It takes milliseconds unless the machine stands still.
const commandTime = 5 * time.Second

// program is the nft command.
type program string

// find also looks where Debian keeps nft, which is not on every PATH.
func find() (program, error) {
	if path, err := exec.LookPath("nft"); err == nil {
		return program(path), nil
	}
	for _, path := range []string{"/usr/sbin/nft", "/sbin/nft"} {
		if _, err := os.Stat(path); err == nil {
			return program(path), nil
		}
	}
	return "", fmt.Errorf("find nft: %w", exec.ErrNotFound)
}

func (p program) run(ctx context.Context, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, string(p), args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = []string{"LC_ALL=C"}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return "", fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, first)
	}
	return out.String(), nil
}

// apply runs script as one transaction: all of it or nothing.
func (p program) apply(ctx context.Context, script string) error {
	_, err := p.run(ctx, script, "-f", "-")
	return err
}

// check has the kernel check script without making it real.
func (p program) check(ctx context.Context, script string) error {
	_, err := p.run(ctx, script, "-c", "-f", "-")
	return err
}

// listing returns the table as nft shows it. Two listings of the same table are equal, because it
// leaves out what packets add.
func (p program) listing(ctx context.Context, table string) (string, error) {
	text, err := p.run(ctx, "", "-s", "list", "table", "ip", table)
	if err != nil {
		return "", err
	}
	return withoutAnswered(text), nil
}

// withoutAnswered cuts the elements out of the set that packets fill.
func withoutAnswered(listing string) string {
	head, rest, found := strings.Cut(listing, "set answered {\n")
	if !found {
		return listing
	}
	body, tail, _ := strings.Cut(rest, "\n\t}\n")
	body, _, _ = strings.Cut(body, "\n\t\telements = ")
	return head + "set answered {\n" + body + "\n\t}\n" + tail
}
