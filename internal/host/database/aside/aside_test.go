package aside

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/engine/postgres"
	"howdah/internal/host/database/cut"
	"howdah/internal/host/database/seed"
)

// scripted is a member's directory with the scripts of its Patroni, and programs of the
// test in place of PostgreSQL's.
type scripted struct {
	*testing.T
	dir string
}

func newScripted(t *testing.T) scripted {
	t.Helper()
	p := scripted{t, t.TempDir()}
	install := postgres.Install{BinDir: filepath.Join(p.dir, "bin")}
	p.write("rewind", string(rewindText(install, p.dir)))
	p.write("copy", string(baseBackupText(install, p.dir, filepath.Join(p.dir, "bin/howdah"))))
	p.write("serve", string(postgresText(install, p.dir)))
	p.write("bin/postgres", "#!/bin/sh\n[ -L data ] && echo link > served || echo directory > served\n")
	p.write("bin/pg_basebackup", "#!/bin/sh\necho \"$@\" > copied\n")
	p.write("data/PG_VERSION", "15")
	return p
}

func (p scripted) write(name, text string) {
	p.Helper()
	path := filepath.Join(p.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		p.Fatal(err)
	}
}

func (p scripted) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(p.dir, name)) // "": it is not there
	return string(text)
}

// rewind runs the script, whose pg_rewind notes the data that it sees, changes them, and
// ends with a code.
func (p scripted) rewind(code int, args ...string) {
	p.Helper()
	p.write("bin/pg_rewind", fmt.Sprintf("#!/bin/sh\n[ -L data ] || echo directory > seen\necho rewound > data/state\nexit %d\n", code))
	cmd := exec.Command(filepath.Join(p.dir, "rewind"), append(args, "-D", "data")...)
	cmd.Dir = p.dir
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if got := exit.ExitCode(); got != code {
			p.Errorf("exit code %d, want %d", got, code)
		}
	} else if code != 0 || err != nil {
		p.Errorf("error %v, want exit code %d", err, code)
	}
}

func (p scripted) isLink() bool {
	info, err := os.Lstat(filepath.Join(p.dir, "data"))
	return err == nil && info.Mode()&os.ModeSymlink != 0
}

// Data on which a rewind failed are put aside: Patroni removes a link. It may also try
// again, and goes on with them when that works.
func TestDataThatCannotBeRewoundArePutAside(t *testing.T) {
	p := newScripted(t)
	p.rewind(0)
	if p.isLink() || p.read("data/state") == "" || p.read("data.kept/PG_VERSION") != "" {
		t.Error("a rewind that worked left the data elsewhere")
	}
	p.rewind(3)
	if !p.isLink() || p.read("data.kept/PG_VERSION") != "15" || p.read("data/PG_VERSION") != "15" {
		t.Error("the data were not put aside")
	}
	p.rewind(4) // the new primary was away, and Patroni tries again
	if !p.isLink() || p.read("data.kept/PG_VERSION") != "15" {
		t.Error("the data were not put aside again")
	}
	p.rewind(0)
	if p.isLink() || p.read("data/PG_VERSION") != "15" || p.read("data.kept/PG_VERSION") != "" {
		t.Error("data that were rewound at last are not in their place")
	}
	if p.read("seen") != "" {
		t.Error("data were rewound where Patroni would have removed them")
	}

	p.rewind(1)
	if err := os.Remove(filepath.Join(p.dir, "data")); err != nil { // as Patroni does
		t.Fatal(err)
	}
	if p.read("data.kept/PG_VERSION") != "15" {
		t.Fatal("the data went with the link")
	}
	p.write("data/PG_VERSION", "a later copy")
	p.rewind(1)
	if p.read("data.kept/PG_VERSION") != "a later copy" {
		t.Errorf("kept is %q: not the newest", p.read("data.kept/PG_VERSION"))
	}
	before := p.isLink()
	p.rewind(0, "--help") // Patroni asks for it while PostgreSQL runs
	if p.isLink() != before {
		t.Error("a question moved the data")
	}
}

// What starts PostgreSQL finds the data in their place: Patroni went on with them though
// they were not rewound.
func TestPostgreSQLNeverWorksOnALink(t *testing.T) {
	p := newScripted(t)
	serve := func() {
		t.Helper()
		cmd := exec.Command(filepath.Join(p.dir, "serve"), "-D", filepath.Join(p.dir, "data"))
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got := p.read("served"); got != "directory\n" || p.read("data/PG_VERSION") != "15" {
			t.Errorf("it works on a %s", got)
		}
	}
	serve()
	p.rewind(1)
	serve()
	if p.read("data.kept/PG_VERSION") != "" {
		t.Error("the data are kept beside themselves")
	}
	p.rewind(1)
	if err := os.Remove(filepath.Join(p.dir, "data")); err != nil { // as Patroni does
		t.Fatal(err)
	}
	p.write("data/PG_VERSION", "15")
	p.write("data.kept/PG_VERSION", "the old copy")
	serve()
	if p.read("data.kept/PG_VERSION") != "the old copy" {
		t.Error("a start took the old copy")
	}
}

// A member whose receiver was cut has a file that its user may only read, and that pg_rewind
// writes.
func TestASealedMemberCanBeRewound(t *testing.T) {
	p := newScripted(t)
	sealed := filepath.Join(p.dir, "data", cut.AutoConfFile)
	if err := os.WriteFile(sealed, []byte("primary_conninfo = ''"), 0o400); err != nil {
		t.Fatal(err)
	}
	p.write("bin/pg_rewind", "#!/bin/sh\nstat -c %a data/"+cut.AutoConfFile+" > mode\n")
	cmd := exec.Command(filepath.Join(p.dir, "rewind"), "-D", "data")
	if out, err := cmd.CombinedOutput(); err != nil || p.read("mode") != "600\n" {
		t.Errorf("it finds mode %q: %v %s", p.read("mode"), err, out)
	}
}

// Whatever is killed during a rewind: what Patroni removes then is a link.
func TestAKilledRewindLeavesTheData(t *testing.T) {
	p := newScripted(t)
	p.write("bin/pg_rewind", "#!/bin/sh\nkill -9 $PPID\n")
	if err := exec.Command(filepath.Join(p.dir, "rewind"), "-D", "data").Run(); err == nil {
		t.Fatal("the script was not killed")
	}
	if !p.isLink() || p.read("data.kept/PG_VERSION") != "15" {
		t.Error("the data would be removed")
	}
	p.rewind(0)
	if p.isLink() || p.read("data/PG_VERSION") != "15" || p.read("data.kept/PG_VERSION") != "" {
		t.Error("data that were rewound at last are not in their place")
	}
}

// A copy beside data that were put aside must not fill the disk.
func TestACopyNeedsRoomBesideWhatIsKept(t *testing.T) {
	for _, tt := range []struct {
		name, kept, size string
		copies           bool
	}{
		{"nothing is kept", "", "", true},
		{"there is room", "data.kept/PG_VERSION", "", true},
		{"there is room for what it was", "data.kept/PG_VERSION", "1", true},
		{"there is none", "data.kept/PG_VERSION", "1000000000000", false},
		{"a size of what is not there any more", "", "1000000000000", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newScripted(t)
			if tt.kept != "" {
				p.write(tt.kept, "15")
			}
			if tt.size != "" {
				p.write(keptSize, tt.size)
			}
			cmd := exec.Command(filepath.Join(p.dir, "copy"), "-X", "stream")
			cmd.Dir = p.dir
			out, err := cmd.CombinedOutput()
			if copied := p.read("copied") == "-X stream\n"; copied != tt.copies || (err == nil) != tt.copies {
				t.Errorf("copied: %v, %v\n%s", copied, err, out)
			}
			if !tt.copies && !strings.Contains(string(out), "are free") {
				t.Errorf("it says %q", out)
			}
		})
	}
}

// A member that may be made of a backup is: our own program is called with what pg_basebackup would
// get, and is that in the end.
func TestACopyMayBeMadeOfABackup(t *testing.T) {
	p := newScripted(t)
	copies := func() string {
		t.Helper()
		p.write("copied", "")
		cmd := exec.Command(filepath.Join(p.dir, "copy"), "-X", "stream")
		cmd.Dir = p.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(p.read("copied"))
	}
	if err := os.Mkdir(filepath.Join(p.dir, seed.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := copies(); got != "-X stream" {
		t.Errorf("without our program it copies %q", got)
	}
	p.write("bin/howdah", "#!/bin/sh\necho \"$@\" > copied\n")
	want := seed.Command + " " + seed.Path(p.dir) + " " + filepath.Join(p.dir, "bin/pg_basebackup") + " -X stream"
	if got := copies(); got != want {
		t.Errorf("it calls %q, want %q", got, want)
	}
	if err := os.Remove(filepath.Join(p.dir, seed.Dir)); err != nil {
		t.Fatal(err)
	}
	if got := copies(); got != "-X stream" {
		t.Errorf("without an order it copies %q", got)
	}
}
