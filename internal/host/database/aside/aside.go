// Package aside keeps the data of a primary that was replaced until there is another copy.
//
// A primary that was replaced comes back by a rewind. Where that fails, Patroni deletes
// its data and copies those of the new primary, which may be alone: then the only other
// copy goes while the next one is made. So the data are put aside for the rewind, and
// deleted when a standby is in sync.
package aside

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
	"howdah/internal/failover/fence"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/cut"
	"howdah/internal/host/database/seed"
	"howdah/internal/host/tree"
	"howdah/internal/model/patroni"
)

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

// Data are those of one member that may be put aside. The exported fields are required. Its methods
// are called by the member's goroutine.
type Data struct {
	*agent.Member
	Agent   *agent.Agent
	DataDir string
	// Leadership is who leads the member's database.
	Leadership func(context.Context) (fence.Leadership, error)

	looked  time.Time // it was looked last whether they may go
	lacking string    // why there is no room for a copy beside them, or ""
}

// Scripts writes what Patroni calls in place of PostgreSQL's own programs. initdb is that for new
// databases. program is our own, which makes data of a backup where there is an order to (package
// seed); "": there is none.
func (d *Data) Scripts(install postgres.Install, initdb []byte, program string) error {
	for name, text := range map[string][]byte{
		initdbScript:     initdb,
		rewindScript:     rewindText(install, d.Dir()),
		baseBackupScript: baseBackupText(install, d.Dir(), program),
		postgresScript:   postgresText(install, d.Dir()),
	} {
		if err := d.User().ReplaceFile(filepath.Join(d.Dir(), name), text, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// Programs are these scripts, by the names of what they stand for.
func Programs(dir string) map[string]string {
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
func baseBackupText(install postgres.Install, dir, program string) []byte {
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
if [ -x '%[5]s' ] && [ -d %[8]s ]; then
	exec '%[5]s' %[7]s '%[6]s' '%[2]s/pg_basebackup' "$@"
fi
exec '%[2]s/pg_basebackup' "$@"
`, dir, install.BinDir, keptDir, keptSize, program, seed.Path(dir), seed.Command, seed.Dir)
}

// keptEvery is how often it is looked whether data that were put aside may go.
const keptEvery = time.Second

// kept reports whether data of the member are put aside, and are not in use.
func (d *Data) kept() bool {
	if _, err := os.Stat(filepath.Join(d.Dir(), keptDir)); err != nil {
		return false
	}
	info, err := os.Lstat(d.DataDir)
	return err != nil || info.Mode()&os.ModeSymlink == 0
}

// Drop deletes data that were put aside once they are not the only other copy: a
// standby is in sync, none is wanted any more, or the database follows another one, which
// has everything. Should a rewind be about to put them back, they are copied anew.
func (d *Data) Drop(ctx context.Context) {
	now := time.Now()
	if now.Sub(d.looked) < keptEvery {
		return
	}
	d.looked = now
	if d.lacking = d.lacksRoom(); !d.kept() {
		return
	}
	l, err := d.Leadership(ctx)
	alone := d.Want.Cluster.Sync == patroni.SyncOff && (d.Reported.Ready || d.Want.Cluster.Upstream != nil)
	if err != nil || !l.Replaceable() && !alone {
		return
	}
	if err := d.throw(now); err != nil {
		d.Log.Warn("delete data that were put aside", "error", err)
		return
	}
	d.Log.Info("deleted data that were put aside: another copy is in sync", "leader", l.Leader, "in sync", l.Sync.Standbys)
}

// throw puts them in the trash as those of a member are that was deleted.
func (d *Data) throw(now time.Time) error {
	if d.Agent.IsVolume(d.ID) {
		_ = postgres.RemoveShared(filepath.Join(d.Dir(), keptDir)) // what it does not know it leaves
		if err := d.Agent.ThrowOut(d.ID, filepath.Join(d.Dir(), keptDir)); err != nil {
			return err
		}
		return d.Agent.ThrowOut(d.ID, filepath.Join(d.Dir(), keptSize))
	}
	trash := d.Agent.TrashPath(fmt.Sprintf("%s-kept-%d", d.ID, now.UnixNano()))
	if err := os.Mkdir(trash, 0o700); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(d.Dir(), keptDir), filepath.Join(trash, patroni.DataDir)); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(d.Dir(), keptSize))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// lacksRoom says why no copy is made beside data that were put aside, or "".
func (d *Data) lacksRoom() string {
	if d.Server.Alive() || !d.kept() {
		return ""
	}
	text, err := d.User().ReadFile(filepath.Join(d.Dir(), keptSize))
	if err != nil {
		return ""
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	disk, left, _ := d.Disk()
	if need, free := room(size, disk>>10), left>>10; err == nil && free < need {
		return fmt.Sprintf("%d MiB are needed, %d MiB are free", need>>10, free>>10)
	}
	return ""
}

// Lacking says why no copy is made beside data that were put aside, as was seen last, or "".
func (d *Data) Lacking() string { return d.lacking }

// Looked is when it was looked last whether they may go.
func (d *Data) Looked() time.Time { return d.looked }

// Kept reports whether the member has data that were put aside, in use or not.
func (d *Data) Kept() bool { return tree.Exists(filepath.Join(d.Dir(), keptDir)) }
