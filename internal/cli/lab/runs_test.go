package lab_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"howdah/internal/cli"
	"howdah/internal/cli/lab"
	"howdah/internal/cli/screen"
	"howdah/internal/lab/book"
	"howdah/internal/lab/result"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgtest"
)

// programVariable says that this test is to be the program: a run in the background is one of its own.
const programVariable = "HOWDAH_LAB_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) == "" {
		os.Exit(m.Run())
	}
	os.Exit(run(screen.Std(), os.Args[1:]...))
}

func run(s *screen.Screen, words ...string) int {
	o := cli.NewOptions(s, "1.2")
	o.Program, o.Every = "howdah", 50*time.Millisecond
	return cli.Run(context.Background(), o, cli.Root(o, lab.Commands(o)...), words)
}

// person runs commands of the lab with a home of its own, which has no Howdah.
type person struct {
	*testing.T
	home, target string
}

func newPerson(t *testing.T) *person {
	t.Helper()
	s := pgtest.Start(t, pgtest.Options{})
	t.Setenv(programVariable, "1")
	return &person{T: t, home: filepath.Join(t.TempDir(), "home"), target: "postgresql://" + s.User + "@" + s.Addr + "/" + s.Database + "?sslmode=disable"}
}

// command runs as a program of its own, as `howdah lab` does.
func (p *person) command(words ...string) *exec.Cmd {
	return exec.CommandContext(p.Context(), os.Args[0], append([]string{"--home", p.home, "lab"}, words...)...) //nolint:gosec // it is this test
}

func (p *person) does(words ...string) string {
	p.Helper()
	var out, said bytes.Buffer
	cmd := p.command(words...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		p.Fatalf("howdah lab %s: %v\n%s", strings.Join(words, " "), err, said.String())
	}
	return out.String()
}

func (p *person) refused(want string, words ...string) {
	p.Helper()
	out, err := p.command(words...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), want) || strings.Count(string(out), "\n") != 1 {
		p.Errorf("howdah lab %s: %v, and not one line with %q:\n%s", strings.Join(words, " "), err, want, out)
	}
}

func (p *person) runs() (all []book.Status) {
	p.Helper()
	if err := json.Unmarshal([]byte(p.does("list", "--runs", "-o", "json")), &all); err != nil {
		p.Fatal(err)
	}
	return all
}

// file writes an experiment of some points, each of which takes some time.
func (p *person) file(points int, pause string) string {
	p.Helper()
	path := filepath.Join(p.TempDir(), "mine.yaml")
	text := fmt.Sprintf("name: mine\ntitle: {en: Mine}\nquestion: {en: Which}\nfactors: []\nruns: %d\neach: [{sql: {text: SELECT pg_sleep(%s), figure: took}}]\nquick: {}\n", points, pause)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	return path
}

func TestARunInTheBackgroundIsFoundAgain(t *testing.T) {
	p := newPerson(t)
	if all := p.runs(); len(all) != 0 {
		t.Fatalf("a new home has the runs %+v", all)
	}
	p.refused("there is no such run", "watch")
	p.refused("there is no such run", "resume", "20260101-000000")

	path := p.file(3, "1")
	said := p.does("run", path, "--target", p.target, "--detach")
	all := p.runs()
	if len(all) != 1 || all[0].State != book.Running || !strings.Contains(said, "howdah lab watch "+all[0].ID) {
		t.Fatalf("it says %q, and there are %+v", said, all)
	}
	p.refused("another howdah lab makes this run", "resume")
	p.does("watch", all[0].ID)
	all = p.runs()
	if all[0].State != book.Ended {
		t.Fatalf("it is %+v", all[0])
	}
	for _, name := range []string{"report.html", "report.ja.html", "result.json"} {
		if _, err := os.Stat(filepath.Join(all[0].Dir, "mine", name)); err != nil {
			t.Error(err)
		}
	}
	p.refused("the run is at its end", "resume")
}

func TestARunThatIsKilledGoesOn(t *testing.T) {
	p := newPerson(t)
	path := p.file(4, "0.5")
	cmd := p.command("run", path, "--target", p.target, "--lang", "en")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var r book.Status
	testkit.Eventually(t, 30*time.Second, func() error {
		all := p.runs()
		if len(all) != 1 || all[0].Progress.Point < 2 {
			return fmt.Errorf("there are %+v", all)
		}
		r = all[0]
		return nil
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if all := p.runs(); all[0].State != book.Broken {
		t.Fatalf("it is %+v", all[0])
	}
	p.refused("the run was broken off", "watch")
	p.does("resume", r.ID)
	all := p.runs()
	if len(all) != 1 || all[0].State != book.Ended {
		t.Fatalf("there are %+v", all)
	}
	// It keeps the flags that it was begun with.
	if _, err := os.Stat(filepath.Join(r.Dir, "mine", "report.ja.html")); err == nil {
		t.Error("it was to be in English")
	}
}

// A point that did not count is made once more, also of a run that has ended, if somebody wants that.
func TestAPointIsMadeAgain(t *testing.T) {
	p := newPerson(t)
	path := filepath.Join(t.TempDir(), "mine.yaml")
	const text = "name: mine\ntitle: {en: Mine}\nquestion: {en: Which}\nfactors: []\nruns: 1\n" +
		"each: [{sql: {text: \"SELECT 1 / coalesce(current_setting('my.mended', true), '0')::int\", value: one}}]\nquick: {}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.does("run", path, "--target", p.target)
	conn, err := pgx.Connect(t.Context(), p.target)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "ALTER ROLE CURRENT_USER SET my.mended = '1'"); err != nil {
		t.Fatal(err)
	}
	p.refused("the run is at its end", "resume")
	p.refused("exclude each other", "resume", "--again", "--detach")
	p.does("resume", "--again")
	all := p.runs()
	if len(all) != 1 || all[0].State != book.Ended {
		t.Fatalf("there are %+v", all)
	}
	r, err := result.Read(filepath.Join(all[0].Dir, "mine"))
	if err != nil || len(r.Points) != 2 || !r.Points[0].Again || r.Points[0].Struck == "" || r.Points[1].Struck != "" || len(r.Resumed) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTheSameCommandGoesOn(t *testing.T) {
	p := newPerson(t)
	path, out := p.file(1, "0.1"), filepath.Join(t.TempDir(), "out")
	for range 2 {
		p.does("run", path, "--target", p.target, "--out", out)
	}
	if all := p.runs(); len(all) != 1 || all[0].Dir != out {
		t.Fatalf("there are %+v", all)
	}
}

// Another target than the run was begun with would make figures that do not belong together.
func TestARunKeepsItsTarget(t *testing.T) {
	p := newPerson(t)
	t.Setenv("HOWDAH_LAB_TARGET", p.target)
	path := p.file(2, "3")
	cmd := p.command("run", path, "--out", "/proc/none")
	if err := cmd.Run(); err == nil {
		t.Fatal("a run has its directory in /proc")
	}
	if all := p.runs(); len(all) != 0 {
		t.Fatalf("there are %+v", all)
	}
	first := p.command("run", path)
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 30*time.Second, func() error {
		if all := p.runs(); len(all) != 1 {
			return fmt.Errorf("there are %+v", all)
		}
		return nil
	})
	_ = first.Process.Kill()
	_ = first.Wait()
	t.Setenv("HOWDAH_LAB_TARGET", strings.Replace(p.target, "127.0.0.1", "localhost", 1))
	// What it had just begun may hold its lock for a moment more.
	testkit.Eventually(t, 30*time.Second, func() error {
		out, err := p.command("resume").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "the run was begun against another target") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

func TestWhatARunRefuses(t *testing.T) {
	p := newPerson(t)
	path := p.file(1, "0")
	p.refused("there are two experiments of the name mine", "run", path, path, "--target", p.target)
	p.refused("lab run takes the name of an experiment", "run")
	p.refused("there is no experiment of that name", "run", "nothing", "--target", p.target)
	p.refused("exclude each other", "run", path, "--target", p.target, "--target-file", path)
	p.refused("others see a password", "run", path, "--target", "postgresql://a:secret@127.0.0.1/x")
	p.refused("give one run", "watch", "a", "b")
	if all := p.runs(); len(all) != 0 {
		t.Fatalf("what was refused is a run: %+v", all)
	}
}
