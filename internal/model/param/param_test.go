package param

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// catalogue is the catalogue of an installed PostgreSQL 15, as its agent read it.
func catalogue(t testing.TB) Catalogue {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "15.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c Catalogue
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	pg15     = Family{Engine: postgresEngine, Major: 15}
	aurora15 = Family{Engine: auroraEngine, Major: 15}
	small    = Machine{Memory: 1 << 30, Storage: 20 << 30, CPUs: 2, Port: 5432}
)

func TestFormulas(t *testing.T) {
	m := Machine{Memory: 16 << 30, Storage: 100 << 30, CPUs: 4, Port: 5432, Replica: true}
	for formula, want := range map[string]int64{
		"{DBInstanceClassMemory/32768}":                               524288,
		"LEAST({DBInstanceClassMemory/9531392},5000)":                 1802,
		"GREATEST({DBInstanceClassMemory*1024/63963136},65536)":       275036,
		"GREATEST({DBInstanceClassMemory/64371566592},3)":             3,
		"SUM({DBInstanceClassMemory/12038},-50003)":                   1377133,
		"{log(DBInstanceClassMemory/8187281418)*1000}":                1000,
		"{AllocatedStorage/1073741824}":                               100,
		"{DBInstanceVCPU*2}":                                          8,
		"{EndPointPort}":                                              5432,
		"{TrueIfReplica * 7}":                                         7,
		"{10/4}":                                                      2,
		"{10/4*4}":                                                    8,
		"GREATEST(LEAST({DBInstanceVCPU},2), 1)":                      2,
		"least( { DBInstanceVCPU } , 3 , 9 )":                         3,
		"SUM({DBInstanceVCPU},0.5)":                                   4,
		"GREATEST({(DBInstanceClassMemory/1024)/(DBInstanceVCPU)},1)": 4194304,
	} {
		if !IsFormula(formula) {
			t.Errorf("%s is no formula", formula)
		}
		if got, err := Evaluate(formula, m); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", formula, got, err, want)
		}
	}
}

func TestBadFormulas(t *testing.T) {
	for formula, why := range map[string]string{
		"{DBInstanceClassMemory":              "missing",
		"{Nothing}":                           "unknown name",
		"GREATEST(1)":                         "arguments",
		"GREATEST(DBInstanceVCPU,1)":          "braces",
		"LEAST({DBInstanceVCPU},1":            "missing",
		"{DBInstanceVCPU}}":                   "unexpected",
		"{DBInstanceVCPU/0}":                  "zero",
		"{}":                                  "missing",
		"LEAST":                               "missing",
		"{DBInstanceVCPU+1}":                  "missing",
		"{1.2.3}":                             "no number",
		"{log(0)}":                            "range",
		"{log(1,2)}":                          "arguments",
		strings.Repeat("(", 40) + "{1}":       "levels",
		"{" + strings.Repeat("1", 2000) + "}": "longer",
		"{9000000000*9000000000*9}":           "range",
	} {
		if got, err := Evaluate(formula, small); !errors.Is(err, errFormula) || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40s: %d, %v; want %q", formula, got, err, why)
		}
	}
	for _, plain := range []string{"", "100", "on", "a(b)", "LEAST", "'x'"} {
		if IsFormula(plain) {
			t.Errorf("%q is a formula", plain)
		}
	}
}

func TestValues(t *testing.T) {
	c := catalogue(t)
	for _, test := range []struct{ name, value, why string }{
		{"work_mem", "65536", ""},
		{"work_mem", "64MB", ""},
		{"work_mem", " 64 MB ", ""},
		{"work_mem", "0x40000", ""},
		{"work_mem", "1.5GB", ""},
		{"work_mem", "63", "between 64"},
		{"work_mem", "64mb", "unit"},
		{"work_mem", "1h", "unit"},
		{"work_mem", "", "not a number"},
		{"work_mem", "3TB", "between"},
		{"work_mem", "64MB 1", "unit"},
		{"work_mem", "NaN", "not a number"},
		{"work_mem", "1e99", "between"},
		{"work_mem", "{DBInstanceClassMemory/16384}", ""},
		{"work_mem", "{DBInstanceClassMemory*4}", "of an instance with 1024 MiB"},
		{"work_mem", "{DBInstanceClassMemory", "formula"},
		{"shared_buffers", "128MB", ""},
		{"shared_buffers", "16", ""},
		{"shared_buffers", "15", "8kB"},
		{"shared_buffers", "1 8kB", "unit"},
		{"statement_timeout", "5min", ""},
		{"statement_timeout", "5000", ""},
		{"statement_timeout", "1us", ""},
		{"statement_timeout", "5MB", "use us, ms"},
		{"max_connections", "100", ""},
		{"max_connections", "29", "between 30"},
		{"max_connections", "100.5", "whole"},
		{"max_connections", "1kB", "no unit"},
		{"random_page_cost", "1.1", ""},
		{"random_page_cost", "1e1", ""},
		{"random_page_cost", "-1", "between"},
		{"random_page_cost", "x", "not a number"},
		{"enable_seqscan", "0", ""},
		{"enable_seqscan", "off", ""},
		{"enable_seqscan", "True", ""},
		{"enable_seqscan", "tru", "use 0 or 1"},
		{"enable_seqscan", "o", "use 0 or 1"},
		{"enable_seqscan", "2", "use 0 or 1"},
		{"enable_seqscan", "{1}", "only stand for a number"},
		{"log_statement", "ddl", ""},
		{"log_statement", "DDL", ""},
		{"log_statement", "some", "one of none, ddl"},
		{"huge_pages", "try", ""},
		{"huge_pages", "on", "one of off, try"},
		{"ssl_min_protocol_version", "TLSv1.3", ""},
		{"ssl_min_protocol_version", "TLSv1", "TLSv1.2"},
		{"synchronous_commit", "remote_apply", ""},
		{"synchronous_commit", "local", "one of on, remote_apply"},
		{"synchronous_commit", "off", "one of on, remote_apply"},
		{"default_transaction_isolation", "repeatable read", ""},
		{"default_transaction_isolation", "serializable", "one of read committed"},
		{"max_slot_wal_keep_size", "2GB", ""},
		{"max_slot_wal_keep_size", "-1", "between 0"},
		{"shared_preload_libraries", "auto_explain,pg_prewarm", ""},
		{"shared_preload_libraries", "", ""},
		{"shared_preload_libraries", "nothing", `"nothing" is not among`},
		{"rds.extensions", "citext, hstore", ""},
		{"rds.extensions", "file_fdw", "not among"},
		{"rds.allowed_extensions", "*", ""},
		{"rds.force_ssl", "0", ""},
		{"rds.force_ssl", "maybe", "0 or 1"},
		{"work_mem", "1e-400", "not a number"},
		{"bgwriter_lru_multiplier", "0e-400", ""},
		{"bgwriter_lru_multiplier", "1e-310", "not a number"},
		{"lc_time", "C.UTF-8", ""},
		{"lc_time", "c", "one of C"},
		{"lc_messages", "de_DE.UTF-8", "one of C"},
		{"max_stack_depth", "8MB", "between 100 and 7680"},
		{"min_wal_size", "31", "between 32"},
		{"max_wal_size", "65GB", "65536"},
		{"wal_keep_size", "1TB", "65536"},
		{"max_slot_wal_keep_size", "1TB", "65536"},
		{"max_standby_streaming_delay", "-1", "between 0"},
		{"max_standby_streaming_delay", "2h", "3600000"},
		{"max_standby_archive_delay", "-1", "between 0"},
		{"max_standby_streaming_delay", "30s", ""},
		{"max_wal_size", "32MB", ""},
		{"search_path", "a\nb", "control"},
		{"auto_explain.log_min_duration", "250ms", ""},
		{"search_path", "a", ""},
	} {
		p, ok := c.Find(pg15, test.name)
		if !ok {
			t.Errorf("no %s", test.name)
			continue
		}
		err := c.Check(p, test.value, []Machine{small})
		if (err == nil) != (test.why == "") || err != nil && (!errors.Is(err, ErrValue) || !strings.Contains(err.Error(), test.why) || !strings.Contains(err.Error(), test.name)) {
			t.Errorf("%s=%q: %v; want %q", test.name, test.value, err, test.why)
		}
	}
}

func TestNumberInOwnUnit(t *testing.T) {
	c := catalogue(t)
	for text, want := range map[string]float64{"work_mem 1GB": 1 << 20, "shared_buffers 1GB": 1 << 17, "statement_timeout 1.5s": 1500, "work_mem 0100000": 32768, "checkpoint_timeout 1h": 3600} {
		name, value, _ := strings.Cut(text, " ")
		p, _ := c.Find(pg15, name)
		if got, err := p.Number(value); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}

// TestOwned: nobody can stop a database, or take it from the platform, by a group.
func TestOwned(t *testing.T) {
	c := catalogue(t)
	for _, name := range []string{
		"ssl", "ssl_cert_file", "data_directory", "hba_file", "synchronous_standby_names", "archive_command", "archive_mode", "port", "listen_addresses",
		"wal_level", "hot_standby", "primary_conninfo", "recovery_target_time", "fsync", "server_version", "block_size", "log_directory", "cluster_name",
		"unix_socket_directories", "dynamic_library_path", "local_preload_libraries", "zero_damaged_pages", "restart_after_crash", "extension_destdir", "output_plugin_libraries", "transaction_read_only", "application_name", "ssl_ciphers", "password_encryption",
	} {
		p, ok := c.Find(pg15, name)
		if !ok || Owned(p, pg15, Instance) == "" || Owned(p, aurora15, Cluster) == "" {
			t.Errorf("%s can be changed", name)
		}
	}
	for _, name := range []string{"work_mem", "max_connections", "shared_buffers", "shared_preload_libraries", "log_min_duration_statement", "rds.force_ssl", "timezone", "search_path", "ssl_min_protocol_version", "synchronous_commit"} {
		p, ok := c.Find(pg15, name)
		if why := Owned(p, pg15, Instance); !ok || why != "" {
			t.Errorf("%s: %s", name, why)
		}
	}
	p, _ := c.Find(aurora15, "max_connections")
	if Owned(p, aurora15, Instance) == "" || Owned(p, aurora15, Cluster) != "" {
		t.Error("max_connections of an Aurora cluster belongs to the cluster's group")
	}
	if _, ok := c.Find(pg15, "apg_ccm_enabled"); ok {
		t.Error("apg_ccm_enabled is Aurora's")
	}
	if _, ok := c.Find(aurora15, "APG_ccm_enabled"); !ok {
		t.Error("Aurora has apg_ccm_enabled")
	}
}

func TestWordsOfRDS(t *testing.T) {
	c := catalogue(t)
	for name, want := range map[string][3]string{
		"work_mem":                 {"integer", "dynamic", "64-2147483647"},
		"shared_buffers":           {"integer", "static", "16-1073741823"},
		"random_page_cost":         {"float", "dynamic", "0-1.79769e+308"},
		"enable_seqscan":           {"boolean", "dynamic", "0,1"},
		"log_statement":            {"string", "dynamic", "none,ddl,mod,all"},
		"shared_preload_libraries": {"list", "static", ""},
		"rds.logical_replication":  {"boolean", "static", "0,1"},
		"TimeZone":                 {"string", "dynamic", ""},
	} {
		p, _ := c.Find(pg15, name)
		if got := [3]string{p.DataType(), p.ApplyType(), p.AllowedValues()}; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	all := c.All(pg15)
	if len(all) < 350 || !slices.IsSortedFunc(all, func(a, b Parameter) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) }) {
		t.Errorf("%d parameters, in order?", len(all))
	}
}

func TestFamilies(t *testing.T) {
	if len(Families()) != 8 {
		t.Error(Families())
	}
	for _, f := range Families() {
		if got, ok := ParseFamily(f.Name()); !ok || got != f {
			t.Error(f)
		}
		if got, ok := ParseDefault(f.DefaultGroup()); !ok || got != f || !IsDefault(f.DefaultGroup()) {
			t.Error(f)
		}
	}
	for _, name := range []string{"postgres14", "postgres", "mysql8.0", "", "aurora-postgresql"} {
		if _, ok := ParseFamily(name); ok {
			t.Error(name)
		}
	}
	if _, ok := ParseDefault("postgres15"); ok {
		t.Error("not a default group")
	}
}

func text(v string) *string { return &v }

func TestVersions(t *testing.T) {
	v := Values{}
	v = v.Set("work_mem", Version{Serial: 1, Value: text("64")})
	later := v.Set("work_mem", Version{Serial: 2, Value: text("128"), Waits: true})
	later = later.Set("jit", Version{Serial: 3, Value: text("0"), Waits: true})
	later = later.Set("max_connections", Version{Serial: 4, Value: text("200"), Waits: true, Static: true})
	for taken, want := range map[int64]map[string]string{
		0: {"work_mem": "64", "max_connections": "200"},
		1: {"work_mem": "64", "max_connections": "200"},
		2: {"work_mem": "128", "max_connections": "200"},
		3: {"work_mem": "128", "max_connections": "200", "jit": "0"},
	} {
		if diff := cmp.Diff(want, later.InForce(taken)); diff != "" {
			t.Errorf("taken over at %d: %s", taken, diff)
		}
		if later.Waiting(taken) != (taken < 3) {
			t.Errorf("waiting at %d", taken)
		}
	}
	if len(v) != 1 || len(v["work_mem"]) != 1 {
		t.Errorf("the older values changed: %v", v)
	}
	if diff := cmp.Diff(map[string]string{"max_connections": "200"}, later.Statics()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"work_mem": "64"}, later.Dynamics(0)); diff != "" {
		t.Error(diff)
	}
	reset := later.Set("work_mem", Version{Serial: 5, Waits: true})
	if got := reset.InForce(4)["work_mem"]; got != "128" || reset.Latest("work_mem") != nil || reset.Latest("jit") == nil {
		t.Errorf("a reset that waits: %q", got)
	}
	if _, there := reset.InForce(5)["work_mem"]; there {
		t.Error("a reset that was taken over")
	}
	gone := reset.Set("work_mem", Version{Serial: 6})
	if _, there := gone["work_mem"]; there || gone.Waiting(5) {
		t.Error("a reset at once leaves nothing")
	}
	for n := range int64(20) {
		gone = gone.Set("jit", Version{Serial: 7 + n, Value: text("1"), Waits: true})
	}
	if len(gone["jit"]) != keptVersions {
		t.Errorf("%d versions are kept", len(gone["jit"]))
	}
}

func TestEffects(t *testing.T) {
	yes, no := true, false
	for _, test := range []struct {
		name   string
		values map[string]string
		want   Effect
	}{
		{"nothing", nil, Effect{Settings: map[string]string{}}},
		{"a formula", map[string]string{"shared_buffers": "{DBInstanceClassMemory/32768}", "work_mem": "{Bad}"}, Effect{Settings: map[string]string{"shared_buffers": "32768"}}},
		{"TLS", map[string]string{"rds.force_ssl": "0"}, Effect{Settings: map[string]string{"rds.force_ssl": "0"}, ForceTLS: &no}},
		{"logical", map[string]string{"rds.logical_replication": "on"}, Effect{Settings: map[string]string{"rds.logical_replication": "on"}, Logical: &yes}},
		{"ccm", map[string]string{"apg_ccm_enabled": "1"}, Effect{Settings: map[string]string{}, Cache: &yes}},
		{"libraries", map[string]string{"shared_preload_libraries": "auto_explain, howdah"}, Effect{Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements,howdah,auto_explain"}}},
		{"no libraries", map[string]string{"shared_preload_libraries": ""}, Effect{Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements,howdah"}}},
		{"extensions", map[string]string{"rds.extensions": "citext, uuid-ossp"}, Effect{Settings: map[string]string{"howdah.extensions": `"citext","uuid-ossp"`}}},
		{"allowed", map[string]string{"rds.allowed_extensions": "citext"}, Effect{Settings: map[string]string{"rds.allowed_extensions": "citext", "howdah.extensions": `"citext"`}}},
		{"all allowed", map[string]string{"rds.allowed_extensions": "*"}, Effect{Settings: map[string]string{}}},
		{"both", map[string]string{"rds.extensions": "citext,hstore", "rds.allowed_extensions": "hstore"}, Effect{Settings: map[string]string{"rds.allowed_extensions": "hstore", "howdah.extensions": `"hstore"`}}},
	} {
		if diff := cmp.Diff(test.want, Apply(test.values, small)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
	database, member := Split(map[string]string{"max_connections": "1", "work_mem": "2", "rds.force_ssl": "1"})
	if len(database) != 2 || len(member) != 1 || member["work_mem"] != "2" {
		t.Errorf("%v, %v", database, member)
	}
}

// FuzzEvaluate: no formula takes the process down, and what is computed is a number.
func FuzzEvaluate(f *testing.F) {
	for _, seed := range []string{"{DBInstanceClassMemory/32768}", "LEAST({AllocatedStorage*2},5000)", "SUM(1,-2)", "{log(8)}", "((((", "{1/0}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, formula string) {
		first, err := Evaluate(formula, small)
		if second, again := Evaluate(formula, small); first != second || (err == nil) != (again == nil) {
			t.Errorf("%q: %d, then %d", formula, first, second)
		}
	})
}

// FuzzCheck: a number that is let through is within its range.
func FuzzCheck(f *testing.F) {
	c := catalogue(f)
	for _, seed := range []string{"64MB", "0x10", "1e5", "-1", "1.5h", "on", "{1}", "٣", "1_000"} {
		f.Add(seed)
	}
	p, _ := c.Find(pg15, "work_mem")
	f.Fuzz(func(t *testing.T, value string) {
		if IsFormula(value) || c.Check(p, value, []Machine{small}) != nil {
			return
		}
		if n, err := p.Number(value); err != nil || n < 64 || n > 2147483647 {
			t.Errorf("%q became %v, %v", value, n, err)
		}
	})
}

// Libraries and extensions are those of the hosts now, and parameters of libraries come with them.
func TestWithWhatIsInstalled(t *testing.T) {
	c, f := catalogue(t).With([]string{"citext", "hll"}, []string{"auto_explain", "pg_cron", "pgaudit"}), Family{"postgres", 15}
	for _, test := range []struct {
		name, value, refused string
	}{
		{"rds.extensions", "citext,hll", ""},
		{"rds.extensions", "hstore", "not among"},
		{"shared_preload_libraries", "pg_cron,pgaudit", ""},
		{"shared_preload_libraries", "pglogical", "not among"},
		{"session_preload_libraries", "auto_explain", ""},
		{"session_preload_libraries", "pg_cron", "not among"}, // it would end every session
		{"cron.max_running_jobs", "8", ""},
		{"cron.max_running_jobs", "1000", "between 0 and 100"},
		{"pgaudit.log", "ddl, role", ""},
	} {
		p, ok := c.Find(f, test.name)
		if !ok {
			t.Fatalf("there is no %s", test.name)
		}
		if err := c.Check(p, test.value, nil); (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
			t.Errorf("%s = %s: %v", test.name, test.value, err)
		}
	}
	if _, ok := c.Find(f, "pg_wait_sampling.history_size"); ok {
		t.Error("a library that is not installed has parameters")
	}
	for _, name := range []string{"cron.host", "cron.use_background_workers", "postgis.gdal_enabled_drivers"} {
		if Owned(Parameter{Name: name, Context: "postmaster"}, f, Instance) == "" {
			t.Errorf("%s can be changed", name)
		}
	}
}

// Jobs of pg_cron run in background workers: nobody logs in for them.
func TestPreloadedCron(t *testing.T) {
	e := Apply(map[string]string{"shared_preload_libraries": "pg_cron"}, Machine{})
	if e.Settings["cron.use_background_workers"] != "on" || e.Settings["shared_preload_libraries"] != "pg_stat_statements,howdah,pg_cron" {
		t.Errorf("settings %v", e.Settings)
	}
	e.Settings["session_preload_libraries"] = "auto_explain"
	if got := Added(e.Settings); !slices.Equal(got, []string{"pg_cron", "auto_explain"}) {
		t.Errorf("added are %q", got)
	}
}
