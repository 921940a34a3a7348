package postgres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"howdah/internal/system/owner"
)

var (
	errNotStopped = errors.New("its server was not stopped in good order")
	errChecksum   = errors.New("the control file has no checksum where one may be")
)

// RenewIdentity gives a cluster a system identifier of its own, as pg_createsubscriber does for a
// copy: so it is never mistaken for the one that it was copied from. The server must have been
// stopped in good order. All WAL is thrown away, and the timeline stays. It may be interrupted
// anywhere, and is to be called again then.
func RenewIdentity(ctx context.Context, install Install, user *owner.User, dataDir string) error {
	path := filepath.Join(dataDir, "global", "pg_control")
	control, err := ReadControl(dataDir)
	if err != nil {
		return err
	}
	if !control.State.Clean() {
		return fmt.Errorf("renew the identity of %s: %w", dataDir, errNotStopped)
	}
	text, err := user.ReadFile(path)
	if err != nil {
		return fmt.Errorf("renew the identity: %w", err)
	}
	if text, err = renewed(text, newIdentifier(time.Now())); err != nil {
		return err
	}
	if err := user.ReplaceFile(path, text, 0o600); err != nil {
		return fmt.Errorf("renew the identity: %w", err)
	}
	// The WAL that is there names the old identifier in its pages.
	_, err = run(ctx, user, nil, install.Program("pg_resetwal"), "--pgdata="+dataDir)
	return err
}

// newIdentifier makes an identifier as initdb does: of the time and the process number.
func newIdentifier(now time.Time) uint64 {
	return uint64(now.Unix())<<32 | uint64(now.Nanosecond()/1000)<<12 | uint64(os.Getpid())&0xFFF
}

// Offsets between which the checksum of a control file lies, whatever the version.
const firstChecksum, lastChecksum = 128, 1024

// renewed returns a control file with another identifier, which is its first field, and with its
// checksum: a CRC-32C of all fields, which follows them.
func renewed(text []byte, identifier uint64) ([]byte, error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	text = bytes.Clone(text)
	for at := firstChecksum; at < min(lastChecksum, len(text)-4); at += 4 {
		if crc32.Checksum(text[:at], table) != binary.NativeEndian.Uint32(text[at:]) {
			continue
		}
		binary.NativeEndian.PutUint64(text, identifier)
		binary.NativeEndian.PutUint32(text[at:], crc32.Checksum(text[:at], table))
		return text, nil
	}
	return nil, errChecksum
}

var settingForm = regexp.MustCompile(`(?m)^([a-z_]+) setting:\s+(\S+)$`)

// ControlSettings returns the settings that the control file remembers of the server which ran
// last, or of the primary whose WAL is replayed: max_connections and others of which a standby may
// not have less.
func ControlSettings(ctx context.Context, install Install, user *owner.User, dataDir string) (map[string]string, error) {
	out, err := run(ctx, user, nil, install.Program("pg_controldata"), dataDir)
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, line := range settingForm.FindAllStringSubmatch(out, -1) {
		all[line[1]] = line[2]
	}
	return all, nil
}
