package model

import (
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func many(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"rapid.checks": "300", "rapid.steps": "10", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
}

// What is drawn can be done, one after the other and at once, and means the same when it is read
// from its text.
func TestWhatIsDrawnCanBeDone(t *testing.T) {
	many(t)
	const limit, atOnce = 6, 3
	rapid.Check(t, func(t *rapid.T) {
		s := Draw(t, Options{Limit: limit, AtOnce: atOnce, Faults: true})
		rounds, err := Rounds(s, New(limit))
		if err != nil {
			t.Fatalf("%v of\n%s", err, s)
		}
		steps := 0
		for _, r := range rounds {
			steps += len(r.Steps)
			if len(r.Steps) > atOnce {
				t.Fatalf("%d at once: %v", len(r.Steps), r.Steps)
			}
			if !r.After.room(0) {
				t.Fatalf("too many members after %v", r.Steps)
			}
			consistent(t, r.After)
		}
		if steps != len(s) {
			t.Fatalf("%d steps in rounds, of %d", steps, len(s))
		}
		again, err := Parse(strings.NewReader(s.String()))
		if err != nil || !cmp.Equal(again.String(), s.String()) {
			t.Fatalf("%v; read again as\n%s", err, again)
		}
	})
}

// consistent checks that names, serials and sources fit together.
func consistent(t *rapid.T, f *Fleet) {
	serials := map[int]bool{}
	for name, d := range f.Databases {
		if d.Name != name || d.Serial == 0 || serials[d.Serial] {
			t.Fatalf("%s is %+v", name, d)
		}
		serials[d.Serial] = true
		if source, ok := f.BySerial(d.Source); d.Follows() && (!ok || source.Stopped) {
			t.Fatalf("%s follows what is not there or stopped", name)
		}
		if f.Root(d).Follows() {
			t.Fatalf("the root of %s follows", name)
		}
	}
}

// Every verb is drawn now and then. A verb that is never drawn tests nothing.
func TestEveryVerbIsDrawn(t *testing.T) {
	many(t)
	seen := map[string]int{}
	at := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		for _, step := range Draw(t, Options{Limit: 6, AtOnce: 3, Faults: true}) {
			seen[step.Verb]++
			if step.Together {
				at[step.Verb]++
			}
		}
	})
	for _, name := range Verbs() {
		if seen[name] < 3 || at[name] == 0 && setting[name].apply == nil {
			t.Errorf("%s: %d times, %d of them at once with another", name, seen[name], at[name])
		}
	}
}

func TestVerbsThatAreLeftOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, step := range Draw(t, Options{Limit: 6, AtOnce: 3, Without: map[string]string{"drain": "a reason", "delete": "a reason"}}) {
			if step.Verb == "delete" || step.IsFault() {
				t.Fatalf("%s", step)
			}
		}
	})
}

func TestWhatStepsMake(t *testing.T) {
	for name, c := range map[string]struct {
		steps string
		want  []Database
	}{
		"create": {
			steps: "create orders multi-az\ncreate shop aurora",
			want: []Database{
				{Serial: 1, Name: "orders", Kind: MultiAZ, Class: "db.t3.micro", Storage: 20, Port: 5432},
				{Serial: 2, Name: "shop", Kind: Aurora, Class: "db.t3.micro", Storage: 20, Port: 5432, Instances: 2, Made: 2, Days: 1},
			},
		},
		"a name is used again": {
			steps: "create orders single\ndelete orders\ncreate orders three",
			want:  []Database{{Serial: 2, Name: "orders", Kind: Three, Class: "db.t3.micro", Storage: 20, Port: 5432, Days: 1}},
		},
		"a replica has its source's shape and password": {
			steps: "create orders single\nstorage orders 10\nport orders 6000\nreplica report single orders\npassword orders\npromote report\npassword orders",
			want: []Database{
				{Serial: 1, Name: "orders", Kind: Single, Class: "db.t3.micro", Storage: 30, Port: 6000, Password: 2},
				{Serial: 2, Name: "report", Kind: Single, Class: "db.t3.micro", Storage: 30, Port: 6000, Password: 1},
			},
		},
		"replicas of what is deleted go on alone": {
			steps: "create orders single\npassword orders\nreplica report single orders\nreplica stock multi-az report\ndelete orders",
			want: []Database{
				{Serial: 2, Name: "report", Kind: Single, Class: "db.t3.micro", Storage: 20, Port: 5432, Password: 1},
				{Serial: 3, Name: "stock", Kind: MultiAZ, Class: "db.t3.micro", Storage: 20, Port: 5432, Source: 2},
			},
		},
		"everything that changes": {
			steps: "create orders single\nclass orders db.t3.small\nmemory orders 2048\nconnections orders 75\nconvert orders multi-az\nrename orders shop\nstop shop",
			want: []Database{
				{Serial: 1, Name: "shop", Kind: MultiAZ, Class: "db.t3.small", Storage: 20, Port: 5432, Memory: 2048, Connections: 75, Stopped: true},
			},
		},
		"instances have names of their own": {
			steps: "create shop aurora\nscale shop 1\nscale shop 3",
			want:  []Database{{Serial: 1, Name: "shop", Kind: Aurora, Class: "db.t3.micro", Storage: 20, Port: 5432, Instances: 3, Made: 4, Days: 1}},
		},
		"what is restored is as it was": {
			steps: "create orders multi-az 1\nport orders 6000\nsnapshot orders sale\npassword orders\nport orders 5433\nrestore shop sale\n" +
				"restore-moment stock orders 50\nretention orders 7\ndelete orders keep\nrestore-retained report 1 100\ndelete-retained 1\ndelete stock drop",
			want: []Database{
				{Serial: 4, Name: "report", Kind: MultiAZ, Class: "db.t3.micro", Storage: 20, Port: 5433, Password: 1, Days: 1, From: 1},
				{Serial: 2, Name: "shop", Kind: MultiAZ, Class: "db.t3.micro", Storage: 20, Port: 6000, Days: 1, From: 1},
			},
		},
		"faults change nothing": {
			steps: "network moving\ncreate orders multi-az\npart primary orders control+peers 9\nfreeze-host primary orders 4\nkill-part serve 2\nupgrade\ndrain a\ncancel orders 3",
			want:  []Database{{Serial: 1, Name: "orders", Kind: MultiAZ, Class: "db.t3.micro", Storage: 20, Port: 5432}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(strings.NewReader(c.steps))
			if err != nil {
				t.Fatal(err)
			}
			rounds, err := Rounds(s, New(0))
			if err != nil {
				t.Fatal(err)
			}
			var got []Database
			after := rounds[len(rounds)-1].After
			for _, name := range after.Names() {
				got = append(got, after.Databases[name])
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSequencesThatMakeNoSense(t *testing.T) {
	for text, want := range map[string]string{
		"create a single\nnetwork apart":                               `step 2, "network apart": the database is not in a state for it`,
		"network loopback\ncreate a single\npart primary a control 2":  `step 3, "part primary a control 2": the database is not in a state for it`,
		"network apart\ncreate a single\npart primary a etcd 2":        `step 3, "part primary a etcd 2": "etcd" is none of all, control, clients, peers, control+peers, control+clients, control-deaf, control-mute, peers-deaf, peers-mute`,
		"create a single\nhang-disk primary a 2":                       `step 2, "hang-disk primary a 2": the database is not in a state for it`,
		"fly orders":                                                   `line 1: "fly orders" is no step`,
		"# so\n\n&":                                                    `line 3: "&" is no step`,
		"delete orders":                                                `step 1, "delete orders": there is no such database`,
		"create a b":                                                   `step 1, "create a b": "b" is none of single, multi-az, three, aurora`,
		"create a single\nfailover a":                                  `step 2, "failover a": the database is not in a state for it`,
		"create a single\nstop a\nreboot a":                            `step 3, "reboot a": the database is not in a state for it`,
		"create a single\nstop a\nkill-postgres primary a":             `step 3, "kill-postgres primary a": the database is not in a state for it`,
		"create a single\nkill-postgres standby a":                     `step 2, "kill-postgres standby a": the database is not in a state for it`,
		"create a single\nfreeze-host primary a 90":                    `step 2, "freeze-host primary a 90": 90 s are more than 24`,
		"create a single\nfreeze-host primary a":                       `step 2, "freeze-host primary a": "" is no number above zero`,
		"create a single\nreboot a\n& port a 6000":                     `step 3, "port a 6000": it cannot be done at once with what is before it`,
		"create a three\nfreeze-host primary a 2\n& drain b":           `step 3, "drain b": it cannot be done at once with what is before it`,
		"create a three\nlose-host primary a 2\n& kill-part agent-b 3": `step 3, "kill-part agent-b 3": it cannot be done at once with what is before it`,
		"create a single\nport a 5432":                                 `step 2, "port a 5432": it is so already`,
		"create a single\nclass a db.t3.micro":                         `step 2, "class a db.t3.micro": it is so already`,
		"create a single\nconvert a single":                            `step 2, "convert a single": it is so already`,
		"create a aurora\nscale a 2":                                   `step 2, "scale a 2": it is so already`,
		"create a single\npause a revoked":                             `step 2, "pause a revoked": the database is not in a state for it`,
		"create a three\npause a over":                                 `step 2, "pause a over": "over" is none of noticed, revoked, elected, served`,
		"create a single\nrestore-moment b a 50":                       `step 2, "restore-moment b a 50": the database is not in a state for it`,
		"create a three 0":                                             `step 1, "create a three 0": "0" is none of 1, 7`,
		"create a single 1\nrestore b sale":                            `step 2, "restore b sale": there is no such database`,
		"create a single 1\nsnapshot a sale\nsnapshot a sale":          `step 3, "snapshot a sale": the database is not in a state for it`,
		"create a single\ndelete a keep":                               `step 2, "delete a keep": the database is not in a state for it`,
		"create a single 1\nretention a 1":                             `step 2, "retention a 1": it is so already`,
		"create a single 1\nsnapshot a sale\n& port a 6000":            `step 3, "port a 6000": it cannot be done at once with what is before it`,
		"create a single\ncreate a single":                             `step 2, "create a single": there is no room for it`,
	} {
		s, err := Parse(strings.NewReader(text))
		if err == nil {
			_, err = Rounds(s, New(0))
		}
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestWhatARoundIsAbout(t *testing.T) {
	s, err := Parse(strings.NewReader("create orders single\nreplica shop single orders\ndelete orders\n& kill-part serve 3"))
	if err != nil {
		t.Fatal(err)
	}
	rounds, err := Rounds(s, New(0))
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, r := range rounds {
		got = append(got, r.Subjects())
	}
	if diff := cmp.Diff([][]string{{"orders"}, {"orders", "shop"}, {"orders", "shop"}}, got); diff != "" {
		t.Error(diff)
	}
}
