package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
)

// writeSecret makes a new file that only its owner may read. It refuses a file that exists, as
// somebody else may have it open.
func writeSecret(path, text string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write token: %w", err)
	}
	_, writeErr := file.WriteString(text + "\n")
	if err := errors.Join(writeErr, file.Close()); err != nil {
		return fmt.Errorf("write token: %w", err)
	}
	return nil
}

// onLoopback reports whether only this machine reaches a URL.
func onLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
