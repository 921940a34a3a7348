package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/cut"
	"howdah/internal/model/patroni"
)

// A primary that was replaced comes back by a rewind. Where that fails, Patroni deletes
// its data and copies those of the new primary, which may be alone: then the only other
// copy goes while the next one is made. So the data are put aside for the rewind, and
// deleted when a standby is in sync.

// Names below a member's directory. The scripts stand for PostgreSQL's programs in its
// Patroni configuration.
const (
	keptDir          = "data.kept"
	keptSize         = "data.kept.size" // in kB
	initdbScript     = "initdb"
	rewindScript     = "pg_rewind"
	baseBackupScript = "pg_basebackup"
	postgresScript   = "postgres"
)

// scripts writes what Patroni calls in place of PostgreSQL's own programs.
func (r *runner) scripts(install postgres.Install) error {
	for name, text := range map[string][]byte{
		initdbScript:     r.host.spares.Script(r.ID),
		rewindScript:     rewindText(install, r.Dir()),
		baseBackupScript: baseBackupText(install, r.Dir()),
		postgresScript:   postgresText(install, r.Dir()),
	} {
		if err := r.User().ReplaceFile(filepath.Join(r.Dir(), name), text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// programs are these scripts, by the names of what they stand for.
func programs(dir string) map[string]string {
	all := map[string]string{}
	for _, name := range []string{initdbScript, rewindScript, baseBackupScript, postgresScript} {
		all[name] = filepath.Join(dir, name)
	}
	return all
}

// rewindText puts data aside while they are rewound: a link takes their place. Where the
// rewind fails, or is killed, Patroni removes the link and nothing else, or tries again. A
// kill in the middle leaves the data under one of the two names.
func rewindText(install postgres.Install, dir string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
# Called by Patroni in place of pg_rewind: puts the data aside for it, so that they are
# there until another copy is. Howdah's agent deletes them then.
program='%s/pg_rewind'
[ "$1" = --help ] && exec "$program" "$@"
cd '%s' || exit 1
if [ -d %[3]s ] && [ ! -L %[3]s ]; then
	rm -rf %[4]s %[5]s
	mv -T %[3]s %[4]s && ln -s %[4]s %[3]s || exit 1
fi
# A cut receiver leaves it read-only, and pg_rewind writes it: whom it is rewound from leads.
[ ! -e %[4]s/%[6]s ] || chmod u+w %[4]s/%[6]s || exit 1
"$program" "$@" || exit
rm %[3]s && mv -T %[4]s %[3]s
`, install.BinDir, dir, patroni.DataDir, keptDir, keptSize, cut.AutoConfFile)
}

// postgresText puts data back that Patroni goes on with though they were not rewound, as
// when the new primary is away: PostgreSQL works where everybody looks for it.
func postgresText(install postgres.Install, dir string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
# Called by Patroni in place of postgres: puts data back that were put aside for a rewind.
if [ -L '%[2]s/%[3]s' ] && [ -d '%[2]s/%[4]s' ]; then
	rm '%[2]s/%[3]s' && mv -T '%[2]s/%[4]s' '%[2]s/%[3]s' || exit 1
fi
exec '%[1]s/postgres' "$@"
`, install.BinDir, dir, patroni.DataDir, keptDir)
}

// room is what a copy needs, in kB, of as much as its source, on a disk of some size: more
// for what was written since and for WAL, and what keeps a disk from being nearly full.
func room(size, disk int64) int64 { return size + size/10 + max(128<<10, disk/50) }

// baseBackupText makes no copy beside data that were put aside unless there is room for
// both: a full disk would stop all other databases of the host.
func baseBackupText(install postgres.Install, dir string) []byte {
	return fmt.Appendf(nil, `#!/bin/sh
# Called by Patroni in place of pg_basebackup: begins no copy that has no room beside the
# data that are kept until it is there.
if cd '%s' && [ -d %[3]s ]; then
	if [ ! -s %[4]s ]; then
		du -sk %[3]s | cut -f1 > %[4]s.new && mv %[4]s.new %[4]s || exit 1
	fi
	size=$(cat %[4]s)
	disk=$(df -Pk . | awk 'NR == 2 { print $2 }')
	free=$(df -Pk . | awk 'NR == 2 { print $4 }')
	spare=$((disk / 50 > 131072 ? disk / 50 : 131072))
	need=$((size + size / 10 + spare)) # as howdah's agent reckons
	if [ "$free" -lt "$need" ]; then
		echo "a copy needs $need kB beside the data that are kept, and $free kB are free" >&2
		exit 1
	fi
fi
exec '%[2]s/pg_basebackup' "$@"
`, dir, install.BinDir, keptDir, keptSize)
}

// keptEvery is how often it is looked whether data that were put aside may go.
const keptEvery = time.Second

// kept reports whether data of the member are put aside, and are not in use.
func (r *runner) kept() bool {
	if _, err := os.Stat(filepath.Join(r.Dir(), keptDir)); err != nil {
		return false
	}
	info, err := os.Lstat(r.dataDir())
	return err != nil || info.Mode()&os.ModeSymlink == 0
}

// dropKept deletes data that were put aside once they are not the only other copy: a
// standby is in sync, none is wanted any more, or the database follows another one, which
// has everything. Should a rewind be about to put them back, they are copied anew.
func (r *runner) dropKept(ctx context.Context) {
	now := time.Now()
	if now.Sub(r.keptLooked) < keptEvery {
		return
	}
	r.keptLooked = now
	if r.lacking = r.lacksRoom(); !r.kept() {
		return
	}
	l, err := r.guard.Leadership(ctx)
	alone := r.Want.Cluster.Sync == patroni.SyncOff && (r.Reported.Ready || r.Want.Cluster.Upstream != nil)
	if err != nil || !l.Replaceable() && !alone {
		return
	}
	if err := r.throwKept(now); err != nil {
		r.Log.Warn("delete data that were put aside", "error", err)
		return
	}
	r.Log.Info("deleted data that were put aside: another copy is in sync", "leader", l.Leader, "in sync", l.Sync.Standbys)
}

// throwKept puts them in the trash as those of a member are that was deleted.
func (r *runner) throwKept(now time.Time) error {
	if r.host.IsVolume(r.ID) {
		_ = postgres.RemoveShared(filepath.Join(r.Dir(), keptDir)) // what it does not know it leaves
		if err := r.host.ThrowOut(r.ID, filepath.Join(r.Dir(), keptDir)); err != nil {
			return err
		}
		return r.host.ThrowOut(r.ID, filepath.Join(r.Dir(), keptSize))
	}
	trash := r.host.TrashPath(fmt.Sprintf("%s-kept-%d", r.ID, now.UnixNano()))
	if err := os.Mkdir(trash, 0o700); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(r.Dir(), keptDir), filepath.Join(trash, patroni.DataDir)); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(r.Dir(), keptSize))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// lacksRoom says why no copy is made beside data that were put aside, or "".
func (r *runner) lacksRoom() string {
	if r.postmaster.Alive() || !r.kept() {
		return ""
	}
	text, err := r.User().ReadFile(filepath.Join(r.Dir(), keptSize))
	if err != nil {
		return ""
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	disk, left, _ := r.Disk()
	if need, free := room(size, disk>>10), left>>10; err == nil && free < need {
		return fmt.Sprintf("%d MiB are needed, %d MiB are free", need>>10, free>>10)
	}
	return ""
}
