package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// shot is what the command line says of a snapshot.
type shot struct {
	Name, State, Repository string
	Stored                  int64
}

// snapshotJourney copies a snapshot into a second repository, and makes a database of the copy.
func (c *cli) snapshotJourney() {
	c.Log("a snapshot is made, copied into another repository, and restored from there")
	c.sql("demo", "CREATE TABLE sold AS SELECT n, md5(n::text) AS what FROM generate_series(1, 5000) n")
	const sum = "SELECT count(*), sum(hashtext(s::text)::bigint) FROM sold s"
	rows := c.sql("demo", sum)
	if out := c.does(180*time.Second, "snapshot", "create", "demo", "before-sale"); !strings.Contains(out, "before-sale has the data of demo") {
		c.Errorf("create says %q", out)
	}
	c.refuses(1, "DBSnapshotAlreadyExists", "snapshot", "create", "demo", "before-sale")
	far := filepath.Join(filepath.Dir(c.home), "far")
	if err := os.Mkdir(far, 0o700); err != nil {
		c.Fatal(err)
	}
	c.does(60*time.Second, "repository", "add", "far", "--directory", far, "--copies")
	c.does(20*time.Second, "repository", "key", "export", "far")

	if out := c.does(20*time.Second, "snapshot", "copy", "before-sale", "again", "--dry-run"); !strings.Contains(out, "a second name for the same files") {
		c.Errorf("a dry run within the repository says %q", out)
	}
	if out := c.does(20*time.Second, "snapshot", "copy", "before-sale", "before-sale-far", "--repository", "far", "--dry-run"); !strings.Contains(out, "are copied") {
		c.Errorf("a dry run says %q", out)
	}
	c.refuses(1, "no snapshot", "snapshot", "show", "before-sale-far")
	c.refuses(1, "howdah repository list", "snapshot", "copy", "before-sale", "nowhere", "--repository", "nowhere")
	c.does(180*time.Second, "snapshot", "copy", "before-sale", "before-sale-far", "--repository", "far")
	if made := reads[[]shot](c, "snapshot", "show", "before-sale-far"); len(made) != 1 || made[0].State != "available" || made[0].Repository != "far" || made[0].Stored == 0 {
		c.Errorf("the copy is %+v", made)
	}
	if out := c.does(20*time.Second, "repository", "show", "far"); !strings.Contains(out, "copies     before-sale-far, of demo: ") {
		c.Errorf("the repository says\n%s", out)
	}

	c.sql("demo", "DELETE FROM sold")
	c.does(20*time.Second, "snapshot", "delete", "before-sale", "--yes")
	c.does(240*time.Second, "db", "restore", "demo-then", "--snapshot", "before-sale-far")
	c.keepsPasswords()
	if got := c.sql("demo-then", sum); got != rows {
		c.Errorf("restored from the copy the rows are %s, and were %s", got, rows)
	}
	c.does(120*time.Second, "db", "delete", "demo-then", "--skip-final-snapshot", "--yes")
	c.downloadJourney(c.sql("demo", "SELECT current_database()"), sum, rows)
}

// keepsPasswords has psql know the passwords of restored databases, which are those of the databases
// that were backed up.
func (c *cli) keepsPasswords() {
	c.Helper()
	path := filepath.Join(c.home, "pgpass")
	text, err := os.ReadFile(path)
	if err != nil {
		c.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if parts := strings.SplitN(line, ":", 5); len(parts) == 5 && !strings.HasPrefix(line, "#") {
			text = append(text, "*:*:*:"+strings.Join(parts[3:], ":")...)
			break
		}
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		c.Fatal(err)
	}
}
