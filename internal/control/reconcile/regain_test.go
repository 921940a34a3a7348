package reconcile

import (
	"encoding/json"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"howdah/internal/control/plan"
	"howdah/internal/control/restore"
	"howdah/internal/model/member"
	"howdah/internal/model/patroni"
	"howdah/internal/model/regain"
	"howdah/internal/model/spec"
	"howdah/internal/state"
	"howdah/internal/testkit/etcdtest"
	"howdah/internal/view"
)

const system = "7000000000000000001"

// restored returns a bench whose state was restored while a Multi-AZ database was at rest.
func restored(t *testing.T) *bench {
	t.Helper()
	b := made(t, true)
	b.same(patroni.InitializeKey(dbID), system)
	b.restore()
	return b
}

// restore changes the state as a restore does.
func (b *bench) restore() {
	t := b.T
	t.Helper()
	if _, err := restore.Rewrite(t.Context(), b.store, regain.Home{ID: "r1", At: b.now}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	answer, err := b.store.Client.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cache.WaitRevision(t.Context(), answer.Header.Revision); err != nil {
		t.Fatal(err)
	}
	for _, zone := range []string{"a", "b", "c"} {
		b.put(state.Put(state.Live(zone), member.Liveness{Alive: true, Since: b.now}))
	}
}

// says makes a host say what it has, and what this home had told it.
func (b *bench) says(host string, copies ...regain.Copy) {
	b.Helper()
	for i, c := range copies {
		sealed, err := b.r.Seals.Seal(host, c.Assignment)
		if err != nil {
			b.Fatal(err)
		}
		if copies[i].Told, err = json.Marshal(sealed); err != nil {
			b.Fatal(err)
		}
	}
	b.claims(host, copies...)
}

// claims makes a host say that it has something, whether that is true or not.
func (b *bench) claims(host string, copies ...regain.Copy) {
	b.Helper()
	said := regain.Holding{Home: "r1", Host: host}
	var ops []state.Op
	for _, c := range copies {
		c.Home, c.Host = "r1", host
		said.Members = append(said.Members, c.Assignment.ID)
		ops = append(ops, state.Put(state.HeldCopy(host, c.Assignment.ID), c))
	}
	b.put(append(ops, state.Put(state.Holding(host), said))...)
}

func (b *bench) copyOf(name string, timeline int, primary, running bool) regain.Copy {
	b.Helper()
	return regain.Copy{
		System: system, Timeline: timeline, LSN: 100, Primary: primary, Running: running,
		Assignment: member.Assignment{
			ID: member.ID(dbID, name), Scope: dbID, Name: name, OwnName: true, Generation: 900, Want: member.Running,
			Address: "127.0.0.3", Port: 15555, RESTPort: 25555, Major: 15,
		},
	}
}

// work makes one round of the reconciler.
func (b *bench) work() {
	b.Helper()
	w := b.look()
	for _, d := range w.databases {
		if err := b.r.work(b.Context(), w, d); err != nil {
			b.Fatal(err)
		}
	}
	if err := b.r.sweep(b.Context(), b.look()); err != nil {
		b.Fatal(err)
	}
	etcdtest.Put(b, b.store, b.cache, state.Put(state.Notice("round"), 1))
}

func (b *bench) text(key string) string {
	b.Helper()
	answer, err := b.store.Client.Get(b.Context(), key)
	if err != nil {
		b.Fatal(err)
	}
	if len(answer.Kvs) == 0 {
		return ""
	}
	return string(answer.Kvs[0].Value)
}

// A failover and a new member are younger than the restored state. Nothing is done before all hosts
// have said what they have. Then the newest copy leads on, and the planner has members as it wants
// them.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	b := restored(t)
	where := map[string]string{}
	layout, err := state.Load[plan.Layout](b.cache, state.Layout(dbID))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range layout.Value.Members {
		where[m.Name] = m.Host
	}
	free := strings.NewReplacer(where["m1"], "", where["m2"], "").Replace("abc")
	b.says(where["m1"], b.copyOf("m1", 1, true, false))
	b.says(where["m2"], b.copyOf("m2", 2, true, true))
	b.work()
	if hold, _ := b.look().held(dbID); !strings.Contains(hold.Value.Why, "waits for "+free+" ") {
		t.Errorf("%+v", hold.Value)
	}
	if leader := b.text(patroni.LeaderKey(dbID)); leader != "" {
		t.Errorf("%s leads", leader)
	}
	b.says(free, b.copyOf("m7", 2, false, true))
	b.work()
	for key, want := range map[string]string{
		patroni.LeaderKey(dbID): patroni.OwnName(dbID, "m2"), patroni.InitializeKey(dbID): system, patroni.HistoryKey(dbID): regain.History(2),
		patroni.SyncKey(dbID): `{"leader":"` + patroni.OwnName(dbID, "m2") + `","quorum":0,"sync_standby":null}`, state.Hold(dbID): "",
	} {
		if got := b.text(key); got != want {
			t.Errorf("%s is %s, want %s", key, got, want)
		}
	}
	if lead, err := state.Get[member.Lead](t.Context(), b.store, state.Lead(dbID)); err != nil || lead.Value != (member.Lead{Member: "m2", Host: where["m2"]}) {
		t.Errorf("who led last: %+v, %v", lead.Value, err)
	}
	if config := b.text(patroni.ConfigKey(dbID)); strings.Contains(config, "pause") || !strings.Contains(config, "synchronous_mode") {
		t.Errorf("Patroni's configuration is %s", config)
	}
	lease, err := b.store.Client.Get(t.Context(), patroni.LeaderKey(dbID))
	if err != nil || lease.Kvs[0].Lease == 0 {
		t.Errorf("the leader key stays for ever: %v", err)
	}
	if b.text(state.Assign(free, member.ID(dbID, "m7"))) == "" {
		t.Error("the host of m7 is told nothing")
	}
	b.settle()
	layout, err = state.Load[plan.Layout](b.cache, state.Layout(dbID))
	if err != nil || len(layout.Value.Members) != 2 || !has(&layout.Value, "m2") {
		t.Errorf("%+v, %v", layout.Value, err)
	}
	if leader := view.Leader(b.cache, dbID); leader != "m2" {
		t.Errorf("%s leads", leader)
	}
}

// If no host has data of a database, the database is not made anew. It may be deleted.
func TestADatabaseWithoutData(t *testing.T) {
	t.Parallel()
	b := restored(t)
	for _, host := range []string{"a", "b", "c"} {
		b.says(host)
	}
	before := b.text(state.Layout(dbID))
	b.work()
	if hold, held := b.look().held(dbID); !held || hold.Value.Why != regain.ErrNoData.Error() {
		t.Errorf("%v %+v", held, hold.Value)
	}
	if now := b.text(state.Layout(dbID)); now != before || b.text(patroni.InitializeKey(dbID)) != regain.Held {
		t.Errorf("%s, and it was %s", now, before)
	}
	i := b.instance(true)
	i.Deleting = true
	b.want(i)
	b.work()
	if _, held := b.look().held(dbID); held {
		t.Error("it is held still")
	}
	b.settle()
	if text := b.text(state.Instance(account, region, i.Name)); text != "" {
		t.Errorf("it is still there: %s", text)
	}
}

// The copy that an operator chose leads on, whichever hosts did not answer.
func TestAnOperatorsChoice(t *testing.T) {
	t.Parallel()
	b := restored(t)
	b.says("a", b.copyOf("m1", 1, true, false))
	hold, _ := b.look().held(dbID)
	hold.Value.Chosen = "a/m1"
	b.put(state.Put(hold.Key, hold.Value))
	b.work()
	if _, held := b.look().held(dbID); held || b.text(patroni.LeaderKey(dbID)) != "" {
		t.Errorf("held %v, and %q leads", held, b.text(patroni.LeaderKey(dbID)))
	}
	if sync := b.text(patroni.SyncKey(dbID)); !strings.Contains(sync, `"leader":"`+patroni.OwnName(dbID, "m1")+`"`) {
		t.Errorf("the synchronous state is %s", sync)
	}
}

// Patroni's keys of data that the home does not know are no leftovers.
func TestUnknownDataAreLeftAlone(t *testing.T) {
	t.Parallel()
	b := restored(t)
	strange := b.copyOf("m1", 1, true, true)
	strange.Assignment.Scope, strange.Assignment.ID = "db-later", "db-later.m1"
	keep, orphan := patroni.LeaderKey("db-later"), patroni.LeaderKey("db-gone")
	for _, key := range []string{keep, orphan} {
		b.same(key, "m1")
	}
	b.says("a", strange)
	b.work()
	if b.text(orphan) == "" || b.text(keep) == "" {
		t.Error("keys were removed before all hosts had answered")
	}
	b.says("b")
	b.says("c")
	b.work()
	if b.text(orphan) != "" || b.text(keep) == "" {
		t.Errorf("left are %q and %q", b.text(orphan), b.text(keep))
	}
	answer, err := b.store.Client.Get(t.Context(), state.LayoutRoot+"db-later", clientv3.WithPrefix())
	if err != nil || answer.Count > 0 {
		t.Errorf("%v, %v", answer, err)
	}
}

// Hosts know others that joined after the backup. Those are waited for, too, until an operator
// forgets them.
func TestAHostThatJoinedSince(t *testing.T) {
	t.Parallel()
	b := restored(t)
	b.says("a", b.copyOf("m1", 1, false, true))
	b.says("b")
	b.says("c")
	b.put(state.Put(state.Holding("c"), regain.Holding{Home: "r1", Host: "c", Hosts: []string{"a", "d", "e"}}), state.Put(state.Gone("e"), b.now))
	b.work()
	if hold, _ := b.look().held(dbID); !strings.Contains(hold.Value.Why, "waits for d ") {
		t.Fatalf("%+v", hold.Value)
	}
	newest := b.copyOf("m7", 2, true, true)
	newest.Assignment.Name, newest.Assignment.ID = "m777", member.ID(dbID, "m777")
	b.says("d", newest)
	b.work()
	if leader := b.text(patroni.LeaderKey(dbID)); leader != patroni.OwnName(dbID, "m777") {
		t.Errorf("%q leads", leader)
	}
	// Names are not used twice, however many were given out since then.
	if layout, err := state.Load[plan.Layout](b.cache, state.Layout(dbID)); err != nil || layout.Value.Next < 777 {
		t.Errorf("%+v, %v", layout.Value, err)
	}
}

// The newest password is the one that a host was last told. With an older number a later change
// would count as one that was already made.
func TestANewerPassword(t *testing.T) {
	t.Parallel()
	b := restored(t)
	for host, serial := range map[string]int64{"a": 3, "b": 2, "c": 4} {
		c := b.copyOf("m"+strconv.FormatInt(serial, 10), 1, host == "b", true)
		c.Assignment.Owner = member.Owner{Name: "u", Verifier: "v" + strconv.FormatInt(serial, 10), Serial: serial}
		if host == "c" {
			c.Assignment.Scope, c.Assignment.ID = "db-2", "db-2."+c.Assignment.Name
		}
		b.says(host, c)
	}
	b.work()
	i, err := state.Get[spec.Instance](t.Context(), b.store, state.Instance(account, region, "orders"))
	if _, held := b.look().held(dbID); held || err != nil || i.Value.Verifier != "v3" || i.Value.PasswordSerial != 3 || i.Value.Promoted {
		t.Errorf("held %v, %+v, %v", held, i.Value, err)
	}
}

// A standby was added after the backup. From the takeover on commits wait for standbys, and only one
// in sync is promoted: the control plane may die before it plans anything.
func TestTakeOverOfAStandbyThatIsNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after string }{
		"of a single instance": {`{"synchronous_mode":false}`, `"synchronous_mode":true`},
		"of a read replica":    {`{"standby_cluster":{"host":"127.9.0.7"},"synchronous_mode":false}`, `"synchronous_mode":true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := made(t, false)
			b.same(patroni.InitializeKey(dbID), system)
			b.same(patroni.ConfigKey(dbID), c.before)
			b.restore()
			b.says("a", b.copyOf("m1", 2, true, true))
			b.says("b", b.copyOf("m7", 2, false, true))
			b.says("c")
			w := b.look()
			hold, _ := w.held(dbID)
			if err := b.r.regain(t.Context(), w, w.databases[0], hold); err != nil {
				t.Fatal(err)
			}
			if config := b.text(patroni.ConfigKey(dbID)); !strings.Contains(config, c.after) || strings.Contains(config, "standby_cluster") {
				t.Errorf("Patroni's configuration is %s", config)
			}
			if leader := b.text(patroni.LeaderKey(dbID)); leader != patroni.OwnName(dbID, "m1") {
				t.Errorf("%q leads", leader)
			}
		})
	}
}

// A read replica that was promoted after the backup stays what it is. As a replica it would lose
// what it acknowledged.
func TestAReplicaThatWasPromotedSince(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ primary, told, promoted bool }{
		"promoted":                        {true, true, true},
		"promoted, and its host lags":     {true, false, true},
		"promoted, and a standby is left": {false, true, true},
		"a replica still":                 {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := made(t, false)
			b.same(patroni.InitializeKey(dbID), system)
			source := b.instance(false)
			source.Name, source.ResourceID, source.Address = "source", "db-source", "127.9.0.7"
			i := b.instance(false)
			i.Source = source.ResourceID
			b.want(source)
			b.want(i)
			b.same(patroni.ConfigKey(dbID), `{"standby_cluster":{"host":"127.9.0.7"},"failsafe_mode":true}`)
			b.restore()
			has, promoted := b.copyOf("m1", 2, c.primary, true), c.promoted
			has.Assignment.Owner = member.Owner{Name: "u", Verifier: "new", Serial: 1}
			if !c.told {
				has.Assignment.Cluster.Upstream = &patroni.Upstream{Host: source.Address}
			}
			b.says("a", has)
			b.says("b")
			b.says("c")
			b.work()
			now, err := state.Get[spec.Instance](t.Context(), b.store, state.Instance(account, region, i.Name))
			if err != nil || now.Value.Promoted != promoted || (now.Value.Verifier == "new") != promoted {
				t.Errorf("%+v, %v", now.Value, err)
			}
			config := b.text(patroni.ConfigKey(dbID))
			if strings.Contains(config, "standby_cluster") == promoted || strings.Contains(config, "pause") {
				t.Errorf("Patroni's configuration is %s", config)
			}
			if b.text(patroni.LeaderKey(dbID)) == "" {
				t.Error("nobody leads")
			}
		})
	}
}
