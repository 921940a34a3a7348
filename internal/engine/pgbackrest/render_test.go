package pgbackrest

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"howdah/internal/engine/backup"
	backupmodel "howdah/internal/model/backup"
)

var update = flag.Bool("update", false, "rewrite golden files")

func place() backup.Place {
	return backup.Place{
		Database: "db-ABC", Dir: "/members/db-ABC.m1/backup", DataDir: "/members/db-ABC.m1/data", SocketDir: "/members/db-ABC.m1/run", Port: 5433,
		User: "rdsmon", DBName: "rdsadmin", Major: 17, BinDir: "/usr/lib/postgresql/17/bin", Processes: 3, Cap: 1 << 30,
		Repositories: []backup.Access{
			{Name: "main", Endpoint: "https://10.0.0.7:9443", Bucket: "main", CAFile: "/members/db-ABC.m1/ca.crt", Key: "AK", Secret: "secret", Path: "/db-ABC", Passphrase: "phrase"},
			{Name: "copies", Path: "/copies/db-ABC"},
		},
	}
}

func primary() backup.Primary {
	return backup.Primary{
		Address: "10.0.0.8", Port: 8432, ServerDir: "/jobs/1", DataDir: "/members/db-ABC.m2/data", SocketDir: "/members/db-ABC.m2/run", PostgresPort: 5434,
		Dir: "/jobs/2", CertFile: "/members/db-ABC.m1/tls/tls.crt", KeyFile: "/members/db-ABC.m1/tls/tls.key", CAFile: "/jobs/2/ca.crt",
	}
}

func TestRenderedFiles(t *testing.T) {
	for _, version := range []Version{Oldest, Preferred} {
		engine := Engine{Program: "/opt/pgbackrest", Version: version}
		var text strings.Builder
		files := engine.Files(place())
		files = append(files, engine.BackupStandby(place(), primary(), backup.Take{Repository: "main"}).Files...)
		files = append(files, engine.Serve(place(), backup.Server{
			Dir: "/jobs/1", Address: "10.0.0.8", Port: 8432, CertFile: "/jobs/1/tls.crt", KeyFile: "/jobs/1/tls.key", CAFile: "/members/db-ABC.m1/tls/ca.crt", Client: "member:db-ABC.m2",
		}).Files...)
		for _, file := range files {
			data := string(file.Data)
			if file.Mode == 0o700 { // what is put before the body
				data = data[:strings.Index(data, "\n# ")+1]
			}
			text.WriteString("==== " + file.Path + " " + file.Mode.String() + "\n" + data)
		}
		golden := filepath.Join("testdata", version.String()+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(text.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if text.String() != string(want) {
			t.Errorf("%s: rendered:\n%s", golden, text.String())
		}
	}
}

func TestScriptsAreWhatTheShellReads(t *testing.T) {
	for _, file := range (Engine{Program: "/opt/it's", Version: Oldest}).Files(place()) {
		if file.Mode != 0o700 {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-n")
		cmd.Stdin = strings.NewReader(string(file.Data))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", file.Path, err, out)
		}
	}
}

func TestSecretsAreInNoArgument(t *testing.T) {
	e, p := Engine{Program: "/opt/pgbackrest", Version: Preferred}, place()
	commands := []backup.Command{
		e.List(p, "main"), e.Verify(p, "copies", ""), e.Verify(p, "main", "20261124-160054F"), e.Backup(p, backup.Take{Repository: "main", Kind: backupmodel.Full, Operation: "op"}),
		e.Restore(p, backup.Restore{Repository: "copies", Label: "L"}),
	}
	commands = append(commands, e.Create(p)...)
	commands = append(commands, e.Renew(p)...)
	commands = append(commands, e.Check(p)...)
	commands = append(commands, e.Expire(p, backup.Expire{Repository: "main", Labels: []string{"L"}, Archive: 3})...)
	standby := e.BackupStandby(p, primary(), backup.Take{Repository: "main", Operation: "op"}).Command
	for _, c := range append(commands, standby) {
		line := strings.Join(append(c.Args, c.Env...), " ")
		if strings.Contains(line, "secret") || strings.Contains(line, "phrase") {
			t.Errorf("%s", line)
		}
		if !strings.Contains(line, "/members/db-ABC.m1/backup/repository-") && !strings.Contains(line, "/jobs/2/standby.conf") {
			t.Errorf("%s does not say which repository", line)
		}
	}
}

func TestExpireRemovesBackupsBeforeWAL(t *testing.T) {
	e, p := Engine{Program: "/opt/pgbackrest", Version: Preferred}, place()
	var got []string
	for _, c := range e.Expire(p, backup.Expire{Repository: "copies", Labels: []string{"A", "B"}, Archive: 3}) {
		got = append(got, strings.Join(c.Args[2:], " "))
	}
	want := "--set=A expire|--set=B expire|--repo1-retention-archive-type=incr --repo1-retention-archive=3 expire"
	if strings.Join(got, "|") != want {
		t.Errorf("%v", got)
	}
	if commands := e.Expire(p, backup.Expire{Repository: "copies"}); len(commands) != 0 {
		t.Errorf("nothing to remove is %v", commands)
	}
}

func TestRecoverySettings(t *testing.T) {
	e, p := Engine{Program: "/opt/pgbackrest", Version: Preferred}, place()
	p.Dir = "/o'dd 100%"
	for name, test := range map[string]struct {
		restore backup.Restore
		want    map[string]string
	}{
		"end":    {backup.Restore{}, map[string]string{"recovery_target": "immediate", "recovery_target_timeline": "current"}},
		"newest": {backup.Restore{Target: backup.Target{Newest: true}}, map[string]string{"recovery_target_timeline": "latest"}},
		"moment": {
			backup.Restore{Target: backup.Target{Until: time.Date(2026, 11, 24, 18, 0, 0, 123456789, time.FixedZone("", 7200))}},
			map[string]string{"recovery_target_time": "2026-11-24 16:00:00.123456+00", "recovery_target_timeline": "latest", "recovery_target_inclusive": "on"},
		},
		"position": {backup.Restore{Timeline: 3, Target: backup.Target{LSN: 0x1600000028}}, map[string]string{"recovery_target_lsn": "16/28", "recovery_target_timeline": "3"}},
		"before":   {backup.Restore{Target: backup.Target{Before: "77"}}, map[string]string{"recovery_target_xid": "77", "recovery_target_inclusive": "off"}},
	} {
		test.restore.Repository = "main"
		got := e.Recovery(p, test.restore)
		for key, want := range test.want {
			if got.Settings[key] != want {
				t.Errorf("%s: %s is %q, and not %q", name, key, got.Settings[key], want)
			}
		}
		mode := map[bool]string{true: "newest", false: "target"}[test.restore.Target.Newest]
		want := `'/o'\''dd 100%%/fetch' ` + mode + ` '/o'\''dd 100%%/repository-main.conf' %f "%p"`
		if got.Signal != "recovery.signal" || got.Settings["restore_command"] != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{"pgBackRest 2.45\n": "2.45", "pgBackRest 2.55.1\n": "2.55.1", "pgBackRest 3.0dev": "3.0"} {
		if got, err := parseVersion(text); err != nil || got.String() != want {
			t.Errorf("%q is %s: %v", text, got, err)
		}
	}
	if v, err := parseVersion("bash 5"); err == nil {
		t.Errorf("it is %s", v)
	}
	if (Version{2, 9}).atLeast(Oldest) || !Preferred.atLeast(Oldest) || !Oldest.atLeast(Oldest) || Oldest.blocks() || !Preferred.blocks() {
		t.Error("versions are compared as texts")
	}
}

func TestFindTakesTheNewest(t *testing.T) {
	engines := installed(t)
	if !engines[0].Version.atLeast(Preferred) {
		t.Errorf("it is %s", engines[0].Version)
	}
	t.Setenv(variable, engines[1].Program)
	if got, err := Find(); err != nil || got.Version != engines[1].Version {
		t.Errorf("%+v, %v", got, err)
	}
	t.Setenv(variable, "/bin/true")
	if got, err := Find(); err == nil {
		t.Errorf("%+v", got)
	}
}
