package postgres

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"howdah/internal/model/param"
	"howdah/internal/model/spec"
	"howdah/internal/system/owner"
	"howdah/internal/testkit"
	"howdah/internal/testkit/pgversion"
)

// cluster is a data directory of the real PostgreSQL, which the tests ask about settings.
type cluster struct {
	*testing.T
	install Install
	user    *owner.User
	dir     string
	own     string // what initdb wrote to postgresql.conf
	catalog param.Catalogue
}

var family = param.Family{Engine: "postgres", Major: pgversion.Major()}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	install, err := Find(family.Major)
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	c := &cluster{T: t, install: install, user: databaseUser(t, base), dir: filepath.Join(base, "data")}
	if err := Prepare(t.Context(), install, c.user, c.dir); err != nil {
		t.Fatal(err)
	}
	c.catalog, err = ReadCatalogue(t.Context(), install, c.user, c.dir, modules)
	if err != nil {
		t.Fatal(err)
	}
	c.own = fmt.Sprintf("listen_addresses = ''\nunix_socket_directories = '%s'\nfsync = off\ndynamic_library_path = '$libdir:%s'\nshared_preload_libraries = '%s,howdah'\n",
		c.dir, modules, strings.Join(c.libraries(), ","))
	return c
}

// libraries returns the installed libraries whose parameters groups may set.
func (c *cluster) libraries() []string {
	return slices.DeleteFunc(slices.Clone(described), func(name string) bool { return !c.install.Extension(name) })
}

var modules = filepath.Join("/opt/howdah/lib", strconv.Itoa(family.Major))

func (c *cluster) configure(settings map[string]string) {
	c.Helper()
	text := c.own
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text += name + " = '" + strings.ReplaceAll(settings[name], "'", "''") + "'\n"
	}
	if err := os.WriteFile(filepath.Join(c.dir, "postgresql.conf"), []byte(text), 0o644); err != nil {
		c.Fatal(err)
	}
}

// prints has PostgreSQL print one parameter without starting a server. Its output also has warnings.
func (c *cluster) prints(name string, settings map[string]string) (string, error) {
	c.Helper()
	c.configure(settings)
	return run(c.Context(), c.user, nil, c.install.Program("postgres"), "-D", c.dir, "-C", name)
}

var namedForm = regexp.MustCompile(`parameter "([^"]+)"|(time zone) file`)

// refused returns the parameters whose values PostgreSQL refuses. It reads values of libraries'
// parameters only when it starts, and then only warns.
func (c *cluster) refused(settings map[string]string) map[string]bool {
	c.Helper()
	ofLibraries, own := maps.Clone(settings), maps.Clone(settings)
	maps.DeleteFunc(ofLibraries, func(name, _ string) bool { return !strings.Contains(name, ".") })
	maps.DeleteFunc(own, func(name, _ string) bool { return strings.Contains(name, ".") })
	out, err := c.prints("server_version", own)
	if len(ofLibraries) > 0 {
		c.configure(ofLibraries)
		said, err := run(c.Context(), c.user, strings.NewReader(""), c.install.Program("postgres"), "--single", "-D", c.dir, "rdsadmin")
		if err != nil {
			c.Fatal(err)
		}
		out += said
	}
	all := map[string]bool{}
	for _, match := range namedForm.FindAllStringSubmatch(out, -1) {
		name := match[1]
		if match[2] != "" {
			name = "timezone_abbreviations"
		}
		all[name] = true
	}
	if err != nil && len(all) == 0 {
		c.Fatal(err)
	}
	return all
}

// start starts a server, and stops it as soon as it takes connections. It returns the server's
// output as an error if the server does not start.
func (c *cluster) start(settings map[string]string) error {
	c.Helper()
	c.configure(settings)
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.install.Program("postgres"), "-D", c.dir)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGQUIT) }
	if c.user != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.user.UID), Gid: uint32(c.user.GID)}
	}
	out, w, err := os.Pipe()
	if err != nil {
		c.Fatal(err)
	}
	defer out.Close()
	cmd.Stderr = w
	testkit.Start(c, cmd)
	w.Close()
	lines, ready := "", false
	for scan := bufio.NewScanner(out); scan.Scan(); {
		lines += scan.Text() + "\n"
		if strings.Contains(scan.Text(), "ready to accept connections") {
			ready = true
			cancel()
			break
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if ready {
		return nil
	}
	return fmt.Errorf("%w: %s", err, lines)
}

// TestParameters compares what Howdah knows of parameters with the real PostgreSQL.
func TestParameters(t *testing.T) {
	c := newCluster(t)
	for name, test := range map[string]func(*cluster, *testing.T){
		"values": (*cluster).postgreSQLAgrees, "limits": (*cluster).everyLimitStarts,
		"combinations": (*cluster).whatDoesNotStart, "shared memory": (*cluster).sharedMemory,
	} {
		t.Run(name, func(t *testing.T) {
			own := *c
			own.T = t
			test(&own, t)
		})
	}
}

// changeable returns the parameters that groups may set, of which PostgreSQL itself told. It takes anything for those of
// libraries that this server has not loaded.
func (c *cluster) changeable() []param.Parameter {
	return slices.DeleteFunc(c.catalog.All(family), func(p param.Parameter) bool {
		told := slices.ContainsFunc(c.catalog.Parameters, func(read param.Parameter) bool { return read.Name == p.Name })
		return !told || param.Owned(p, family, param.Instance) != "" || strings.HasPrefix(p.Name, "rds.")
	})
}

// texts has values for the parameters that no range and no list describes completely.
var texts = map[string][]string{
	"client_encoding":             {"UTF8", "latin1", "nonsense", ""},
	"DateStyle":                   {"ISO, DMY", "german", "iso, nonsense", "iso,", "ISO, German"},
	"default_table_access_method": {"heap", "", strings.Repeat("x", 64), "columnar"},
	"default_tablespace":          {"", "pg_default", "none"},
	"default_text_search_config":  {"pg_catalog.english", "english", "a.b.c.d", ""},
	"log_line_prefix":             {"%m [%p] ", "", "%%", "it's"},
	"search_path":                 {`"$user", public`, "", "a b", `"open`, "a,,b", "a,"},
	"session_preload_libraries":   {"auto_explain", ""},
	"temp_tablespaces":            {"", "a, b", "a b"},
	"TimeZone":                    {"Europe/Berlin", "utc", "UTC+5", "-7", "<+02>-2", "Nowhere", "", "Europe/", "../etc"},
	"timezone_abbreviations":      {"Default", "India", "Nowhere", "../Default", ""},
	"lc_messages":                 {"c", "xx_YY", "C.UTF-8 ", "en_US.nonsense"},
	"lc_time":                     {"c", "xx_YY", "posix"},
}

// candidates returns valid and invalid values of a parameter.
func candidates(p param.Parameter) []string {
	switch p.Type {
	case "bool":
		return []string{"0", "1", "on", "OFF", "true", "False", "yes", "no", "2", "", "maybe", "{1}"}
	case "enum":
		return append([]string{"nonsense", "", strings.ToUpper(p.Enum[0]), p.Enum[0] + "x"}, p.Enum...)
	case "string":
		return append(slices.Clone(texts[p.Name]), p.Enum...)
	}
	least, _ := strconv.ParseFloat(p.Min, 64)
	most, _ := strconv.ParseFloat(p.Max, 64)
	shown := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	all := []string{p.Min, p.Max, p.Default, shown(math.Floor(least + 1)), shown(least - 1), "-2", "", "x", "1 x", "{1}x", "NaN", "0x40", "0100", "1e2", "1.5", " 100 ", "1..5", "1e400", "99999999999999999999", "1kb", "1 min", "100ms", "2h", "64 kB", "1GB", "10us", "1.4h", "1d", "3B", "+5", "0x", "1_000", "0b1", "0o17", "inf", "1e-400", ".5", "5.", "- 5"}
	if most < 1e300 {
		all = append(all, shown(most+1), shown(most*2), shown(math.Floor((least+most)/2)))
	}
	return all
}

// postgreSQLAgrees tries many values of every parameter that a group may set. PostgreSQL must
// accept what Howdah accepts, and refuse what Howdah refuses. stricter knows the exceptions.
func (c *cluster) postgreSQLAgrees(t *testing.T) {
	all := c.changeable()
	asked := 0
	for round := 0; ; round++ {
		given, ours := map[string]string{}, map[string]error{}
		byName := map[string]param.Parameter{}
		for _, p := range all {
			byName[p.Name] = p
			values := candidates(p)
			if round >= len(values) || startsAlone[p.Name] {
				continue
			}
			ours[p.Name] = c.check(p, values[round])
			given[p.Name] = values[round]
			if param.IsFormula(values[round]) && ours[p.Name] == nil {
				given[p.Name] = param.Apply(given, oneMachine).Settings[p.Name]
			}
		}
		if len(given) == 0 {
			break
		}
		asked += len(given)
		theirs := c.refused(given)
		for name, value := range given {
			switch refused := theirs[name]; {
			case ours[name] == nil && refused:
				t.Errorf("%s=%q is accepted here, and PostgreSQL refuses it", name, value)
			case ours[name] != nil && !refused && !c.stricter(byName[name], value):
				t.Errorf("%s=%q is refused here, and PostgreSQL accepts it: %v", name, value, ours[name])
			}
		}
	}
	t.Logf("%d values of %d parameters", asked, len(all))
	if len(all) < 200 || asked < 3000 {
		t.Errorf("only %d values of %d parameters", asked, len(all))
	}
}

// check checks a value as the API does.
func (c *cluster) check(p param.Parameter, value string) error {
	err := c.catalog.Check(p, value, []param.Machine{oneMachine})
	if err == nil {
		err = param.CheckStart(map[string]string{p.Name: value}, family.Major)
	}
	if err == nil && !strings.Contains(p.Name, ".") && !strings.HasSuffix(p.Name, "_preload_libraries") && p.Type == "string" {
		err = CheckSetting(c.Context(), c.install, p.Name, value)
	}
	if err != nil && !errors.Is(err, param.ErrValue) && !errors.Is(err, ErrSetting) {
		c.Fatal(err)
	}
	return err
}

var oneMachine = param.Machine{Memory: 1 << 30, Storage: 20 << 30, CPUs: 2, Port: 5432}

// startsAlone lists the parameters that are not tried together with others, as they change what
// PostgreSQL prints about those.
var startsAlone = map[string]bool{"shared_preload_libraries": true, "log_statement_stats": true, "log_min_messages": true, "pg_stat_statements.max": true}

// stricter reports whether Howdah refuses a value on purpose that PostgreSQL accepts.
func (c *cluster) stricter(p param.Parameter, value string) bool {
	switch {
	case narrower[p.Name] != "":
		return true
	case p.Type == "integer" && p.Unit == "" && value == "1.5", p.Type == "integer" && p.Unit == "" && value == ".5":
		return true // PostgreSQL would round it: surely a mistake
	}
	return false
}

// narrower says why a parameter takes fewer values here than in PostgreSQL.
var narrower = map[string]string{
	"max_connections": "Patroni", "max_locks_per_transaction": "Patroni", "max_wal_senders": "Patroni", "max_replication_slots": "Patroni", "max_worker_processes": "Patroni",
	"wal_keep_size": "standbys", "max_slot_wal_keep_size": "the disk", "max_standby_streaming_delay": "the disk", "max_standby_archive_delay": "the disk", "superuser_reserved_connections": "as on RDS",
	"min_wal_size": "found at the start", "max_wal_size": "found at the start", "reserved_connections": "found at the start", "autovacuum_worker_slots": "found at the start", "lc_messages": "hosts differ", "lc_time": "hosts differ", "lc_monetary": "hosts differ", "lc_numeric": "hosts differ",
}

// everyLimitStarts starts PostgreSQL with all parameters at their minimum, and with all at their
// maximum as far as these go together. The platform's settings are set, too.
func (c *cluster) everyLimitStarts(t *testing.T) {
	for name, limit := range map[string]func(param.Parameter) string{
		"least": func(p param.Parameter) string { return p.Min },
		"most":  func(p param.Parameter) string { return p.Max },
	} {
		settings := c.platform(1 << 30)
		for _, p := range c.changeable() {
			value := limit(p)
			if p.Type == "bool" {
				value = map[string]string{"least": "0", "most": "1"}[name]
			}
			more := maps.Clone(settings)
			more[p.Name] = value
			if value != "" && c.catalog.Check(p, value, nil) == nil && param.CheckStart(more, family.Major) == nil && param.SharedMemory(more, family.Major) < 1<<30 {
				settings = more
			}
		}
		if err := c.start(settings); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// platform returns the settings of a database without a parameter group.
func (c *cluster) platform(memory int64) map[string]string {
	all := spec.ClusterParameters(memory, 20<<30)
	maps.Copy(all, spec.MemberParameters(memory))
	all["logging_collector"] = "off" // the test reads it
	all["shared_preload_libraries"] = strings.Join(append(c.libraries(), "howdah"), ",")
	return all
}

// whatDoesNotStart tries values that keep the real PostgreSQL from starting, alone or together.
// Howdah must refuse them.
func (c *cluster) whatDoesNotStart(t *testing.T) {
	for _, values := range []map[string]string{
		{"min_wal_size": "2"}, {"max_wal_size": "31MB", "min_wal_size": "31MB"}, {"max_stack_depth": "7681"}, {"lc_time": "xx_YY"}, {"TimeZone": "Nowhere"},
		{"shared_preload_libraries": "nothing"}, {"huge_pages": "on", "huge_page_size": "1GB"}, {"shared_buffers": "64TB"}, {"min_dynamic_shared_memory": "64TB"},
		{"max_connections": "200000", workers(): "62143"}, {"max_locks_per_transaction": "2147483647"}, {"max_pred_locks_per_transaction": "2147483647"},
		{"log_statement_stats": "1", "log_parser_stats": "1"}, {"log_statement_stats": "1", "log_planner_stats": "on"}, {"log_executor_stats": "yes", "log_statement_stats": "true"},
		{"superuser_reserved_connections": "40", "max_connections": "40"}, {"wal_level": "minimal"}, {"archive_mode": "on", "wal_level": "minimal", "max_wal_senders": "0"},
		{"pg_stat_statements.max": "1073741823", "track_activity_query_size": "1MB", "max_connections": "200000"},
	} {
		if c.refuses(values) == nil {
			t.Errorf("%v is accepted here", values)
		}
		settings := c.platform(1 << 30)
		maps.Copy(settings, values)
		if err := c.start(settings); err == nil {
			t.Errorf("PostgreSQL starts with %v", values)
		}
	}
}

// workers returns the name of the parameter that limits the number of autovacuum processes.
func workers() string {
	if family.Major >= 18 {
		return "autovacuum_worker_slots"
	}
	return "autovacuum_max_workers"
}

// has reports whether this version has all of these parameters.
func (c *cluster) has(values map[string]string) bool {
	for name := range values {
		if _, ok := c.catalog.Find(family, name); !ok {
			return false
		}
	}
	return true
}

// refuses returns the error with which the API refuses the values for a database of 1 GiB, or nil.
func (c *cluster) refuses(values map[string]string) error {
	for name, value := range values {
		p, ok := c.catalog.Find(family, name)
		if !ok {
			c.Fatal(name)
		}
		if why := param.Owned(p, family, param.Instance); why != "" {
			return fmt.Errorf("%w: %s", param.ErrValue, why)
		}
		if err := c.check(p, value); err != nil {
			return err
		}
	}
	settings := c.platform(1 << 30)
	maps.Copy(settings, values)
	if err := param.CheckStart(settings, family.Major); err != nil {
		return err
	}
	if n := param.SharedMemory(settings, family.Major); n > 1<<30 {
		return fmt.Errorf("%w: %d bytes", param.ErrValue, n)
	}
	return nil
}

// sharedMemory checks that Howdah's estimate is never below what PostgreSQL asks for, and not much
// above.
func (c *cluster) sharedMemory(t *testing.T) {
	for _, values := range []map[string]string{
		{}, {"shared_buffers": "16"}, {"shared_buffers": "4GB"}, {"shared_buffers": "4GB", "wal_buffers": "1GB"}, {"min_dynamic_shared_memory": "3GB"},
		{"track_activity_query_size": "1MB"}, {"track_activity_query_size": "1MB", "max_connections": "2000"}, {"max_connections": "30"}, {"max_connections": "20000"},
		{"max_connections": "200000", "max_worker_processes": "10000", "max_wal_senders": "10000"}, {"max_worker_processes": "10000"}, {"max_wal_senders": "10000"},
		{workers(): "100000"}, {"max_prepared_transactions": "200000"}, {"max_prepared_transactions": "20000", "max_pred_locks_per_transaction": "1000"},
		{"max_locks_per_transaction": "10000"}, {"max_pred_locks_per_transaction": "10000"}, {"max_locks_per_transaction": "32", "max_pred_locks_per_transaction": "10"},
		{"max_locks_per_transaction": "3000", "max_pred_locks_per_transaction": "3000", "max_connections": "3000"}, {"max_replication_slots": "10000"},
		{"max_logical_replication_workers": "262143"}, {"pg_stat_statements.max": "100"}, {"pg_stat_statements.max": "10000000"}, {"old_snapshot_threshold": "86400"},
		{"io_max_concurrency": "1024"}, {"io_max_concurrency": "1024", "io_max_combine_limit": "1MB", "max_connections": "1000"}, {"transaction_buffers": "1GB"}, {"notify_buffers": "1GB"},
	} {
		if !c.has(values) {
			continue
		}
		settings := c.platform(1 << 30)
		maps.Copy(settings, values)
		out, err := c.prints("shared_memory_size", settings)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		theirs, err := strconv.ParseInt(lines[len(lines)-1], 10, 64)
		if err != nil {
			t.Fatal(err, out)
		}
		ours := param.SharedMemory(settings, family.Major) >> 20
		t.Logf("%5d MiB, reckoned as %5d: %v", theirs, ours, values)
		if ours+1 < theirs || ours > theirs*5/4+16 {
			t.Errorf("PostgreSQL asks for %d MiB with %v, not for %d", theirs, values, ours)
		}
	}
}
