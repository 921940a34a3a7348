package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/testkit"
)

// Prisma Migrate makes migrations of two schemas, each by way of a shadow database, and deploys them to
// another database. What it then reads out of that is the schema, and its client works with it.
func TestPrisma(t *testing.T) {
	p := givenPrisma(t)
	p.sql("postgres", "CREATE DATABASE development")
	p.sql("postgres", "CREATE DATABASE production")
	p.uses("before.prisma")
	p.prisma("development", "migrate", "dev", "--name", "before", "--skip-generate")
	p.uses("after.prisma")
	p.prisma("development", "migrate", "dev", "--name", "after", "--skip-generate")
	if left := p.ask("postgres", "SELECT count(*)::text FROM pg_database WHERE datname LIKE 'prisma%'"); left != "0" {
		t.Errorf("%s shadow databases are left", left)
	}
	p.prisma("production", "migrate", "deploy")
	if out := p.prisma("production", "migrate", "deploy"); !strings.Contains(out, "No pending migrations") {
		t.Errorf("again:\n%s", out)
	}
	models := func(schema string) string {
		_, after, _ := strings.Cut(schema, "\nmodel ")
		before, _, _ := strings.Cut(after, "// *** WARNING")
		return strings.TrimSpace(before)
	}
	want, err := os.ReadFile(testdata(t, "prisma", "pulled.prisma"))
	if err != nil {
		t.Fatal(err)
	}
	if pulled := p.prisma("production", "db", "pull", "--print"); models(pulled) != models(string(want)) {
		t.Errorf("db pull says\n%s", pulled)
	}
	p.prisma("production", "generate")
	out := p.runs(time.Minute, p.dir, p.environ("production"), p.node, "client.mjs")
	if out != "types\nconstraints\ntransactions\nqueries\ncascades\n" {
		t.Errorf("the client said\n%s", out)
	}
}

// prisma is an instance, and a directory of an application with Prisma.
type prisma struct {
	*instance
	node, dir string
}

func givenPrisma(t *testing.T) *prisma {
	t.Helper()
	p := &prisma{node: testkit.NeedProgram(t, "node"), dir: t.TempDir()}
	testkit.NeedProgram(t, "script")
	if err := os.CopyFS(p.dir, os.DirFS(testdata(t, "prisma"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(installed(t, "prisma", "node_modules"), filepath.Join(p.dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	p.instance = given(t, "prisma", false)
	return p
}

// uses makes a file of testdata the schema of the application.
func (p *prisma) uses(name string) {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err == nil {
		err = os.WriteFile(filepath.Join(p.dir, "schema.prisma"), text, 0o600)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// prisma runs a command of Prisma's on a database. `migrate dev` wants a terminal: script makes one.
func (p *prisma) prisma(database string, args ...string) string {
	p.Helper()
	// Without a URL Prisma would look for its binary, though nothing uses either.
	env := p.environ(database, "DATABASE_URL=postgresql://unused/"+database, "CHECKPOINT_DISABLE=1", "PRISMA_HIDE_UPDATE_MESSAGE=1", "NO_COLOR=1")
	program, args := p.node, append([]string{"node_modules/prisma/build/index.js"}, args...)
	if args[1] == "migrate" && args[2] == "dev" {
		program, args = "script", []string{"-q", "-e", "-c", p.node + " " + strings.Join(args, " "), "/dev/null"}
	}
	return p.runs(time.Minute, p.dir, env, program, args...)
}
