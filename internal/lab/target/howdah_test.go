package target

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/identity/home"
	"howdah/internal/lab/address"
	"howdah/internal/lab/experiment"
	"howdah/internal/lab/own"
)

// howdah is a target whose API nobody asks.
func howdah(t *testing.T, dir string) *Howdah {
	t.Helper()
	return &Howdah{API: &client.Client{Config: client.Config{Source: "home /h"}}, Dir: dir, Experiment: "my_own-e1"}
}

// What is made has a name that RDS takes, which a later run finds again, with its password.
func TestWhatARunRemembers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "e1")
	own, err := home.Ensure(filepath.Join(t.TempDir(), "home"), home.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := howdah(t, dir)
	h.CA = own.CAFile()
	name := h.Name()
	if !strings.HasPrefix(name, "lab-my-own-e1-") || !strings.HasSuffix(name, " of home /h") {
		t.Errorf("%s", name)
	}
	server, err := h.connects("127.0.0.9:5432")
	if err != nil || strings.Contains(server.Address(), h.password) || !strings.Contains(server.Address(), "sslmode=verify-full") {
		t.Errorf("%s, %v", server.Address(), err)
	}
	for _, file := range []string{recordName, "pgpass"} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	again := howdah(t, dir)
	if again.Name() != name || again.password != h.password || len(h.password) != 32 {
		t.Errorf("%s with %q, and was %s with %q", again.Name(), again.password, name, h.password)
	}
	for range 2 {
		if err := h.forget(); err != nil {
			t.Error(err)
		}
	}
	if last := howdah(t, dir); last.Name() != name || last.password == again.password {
		t.Error("the password is not forgotten, or the name is")
	}
	if other := howdah(t, filepath.Join(t.TempDir(), "e1")); other.Name() == name {
		t.Error("two runs have one name")
	}
	if err := os.WriteFile(filepath.Join(dir, recordName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := howdah(t, dir).load(); err == nil {
		t.Error("a broken record is read")
	}
}

func TestStorageTypes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		w    experiment.Wanted
		kind string
		iops int32
	}{
		{experiment.Wanted{Storage: 10}, "standard", 0}, {experiment.Wanted{Storage: 20}, "gp2", 0},
		{experiment.Wanted{Storage: 20, IOPS: 500}, "gp3", 500}, {experiment.Wanted{Storage: 100, IOPS: 1000}, "io1", 1000},
	} {
		kind, iops := storage(c.w)
		if kind != c.kind || value(iops) != c.iops {
			t.Errorf("%+v: %s, %d", c.w, kind, value(iops))
		}
	}
}

// A group is named by what is in it, and only what differs from the default needs one.
func TestGroups(t *testing.T) {
	t.Parallel()
	h := &Howdah{record: record{Identifier: "lab-e2-1"}}
	if g := h.group(experiment.Wanted{Warm: true, MultiAZ: true}); g != nil {
		t.Errorf("%s", *g)
	}
	off := h.group(experiment.Wanted{Parameters: map[string]string{"autovacuum": "0"}})
	on := h.group(experiment.Wanted{Parameters: map[string]string{"autovacuum": "1"}})
	same := h.group(experiment.Wanted{Parameters: map[string]string{"autovacuum": "1"}, Class: "db.m3.large"})
	warm := experiment.Wanted{Cluster: true, Warm: true}
	if off == nil || on == nil || same == nil || *off == *on || *on != *same || h.group(warm) == nil || parameters(warm)[warmParameter] != "1" {
		t.Error("groups are not named by what is in them")
	}
}

func TestWholeDatabases(t *testing.T) {
	t.Parallel()
	primary := admin.Member{Name: "m1", Role: admin.RolePrimary, Ready: true}
	given := func(members ...admin.Member) *admin.Database {
		return &admin.Database{Status: available, Members: append([]admin.Member{primary}, members...)}
	}
	late := given()
	late.Status = "modifying"
	for name, c := range map[string]struct {
		d       *admin.Database
		multiAZ bool
		lacks   string
	}{
		"one copy":             {d: given()},
		"nobody knows it":      {lacks: "nobody knows"},
		"a copy starts":        {d: given(admin.Member{Name: "m2", State: "starting"}), lacks: "m2 is starting"},
		"a copy goes":          {d: given(admin.Member{Name: "m2", Ready: true, Going: "replaced"}), lacks: "m2"},
		"no copy confirms":     {d: given(admin.Member{Name: "m2", Ready: true, Sync: admin.SyncAsync}), multiAZ: true, lacks: "confirms"},
		"one confirms":         {d: given(admin.Member{Name: "m2", Ready: true, Sync: admin.SyncSync}), multiAZ: true},
		"one of two confirms":  {d: given(admin.Member{Name: "m2", Ready: true, Sync: admin.SyncQuorum}), multiAZ: true},
		"something is changed": {d: late, lacks: "modifying"},
	} {
		err := whole(c.d, c.multiAZ)
		if (err == nil) != (c.lacks == "") || err != nil && (!errors.Is(err, errStandby) || !strings.Contains(err.Error(), c.lacks)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatATargetCanDo(t *testing.T) {
	t.Parallel()
	e := &experiment.Experiment{Name: "drill", Needs: []string{experiment.NeedFaults}}
	h := howdah(t, t.TempDir())
	if err := Check(h, e); !errors.Is(err, ErrUnable) || !strings.Contains(err.Error(), "on this machine") {
		t.Errorf("a Howdah elsewhere: %v", err)
	}
	e.Needs = []string{experiment.NeedHowdah, experiment.NeedStandbys}
	if err := Check(h, e); err != nil {
		t.Error(err)
	}
	server, err := address.Parse("postgresql://app@127.0.0.1/app", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(&Address{Server: server}, e); !errors.Is(err, ErrUnable) {
		t.Errorf("an address: %v", err)
	}
}

func TestClassesThatAreLargerThanHosts(t *testing.T) {
	t.Parallel()
	hosts := []admin.Host{{CPUs: 2, Memory: 8 << 30}, {CPUs: 1, Memory: 16 << 30}}
	var all []experiment.Wanted
	for _, class := range []string{"db.m3.large", "db.cr1.8xlarge", "db.m3.xlarge", "db.m3.xlarge", "db.own.large"} {
		all = append(all, experiment.Wanted{Class: class})
	}
	got := caveats(hosts, all)
	if len(got) != 2 || !strings.Contains(got[0], "db.cr1.8xlarge has 32 processors and 244 GiB, and the largest host has 2 and 16") || !strings.Contains(got[1], "db.m3.xlarge") {
		t.Errorf("%q", got)
	}
}

// A password in a file that others may write, or of somebody else's, is not the lab's own.
func TestThePasswordOfSomebodyElse(t *testing.T) {
	t.Parallel()
	h := &Howdah{Dir: t.TempDir()}
	if password, err := h.oldPassword(); password != "" || err != nil {
		t.Errorf("without a file: %q, %v", password, err)
	}
	if err := os.WriteFile(h.passFile(), []byte(passPrefix+"secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if password, err := h.oldPassword(); password != "secret" || err != nil {
		t.Errorf("%q, %v", password, err)
	}
	if err := os.Chmod(h.passFile(), 0o666); err != nil { //nolint:gosec // that is what is refused
		t.Fatal(err)
	}
	if password, err := h.oldPassword(); password != "" || !errors.Is(err, own.ErrForeign) {
		t.Errorf("others may write it: %q, %v", password, err)
	}
}
