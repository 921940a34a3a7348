package tpcc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"howdah/internal/lab/tpcc/form"
	"howdah/internal/testkit"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/pgtest"
)

func TestRun(t *testing.T) {
	l := startLab(t, Compatible, Specification)
	for _, mode := range []Mode{Compatible, Specification} {
		for _, call := range depth.Some(t, 1, []Call{Procedures, ClientSQL}) {
			t.Run(fmt.Sprintf("%s by %s", mode, call), func(t *testing.T) { testRun(t, l.copy(t, mode), mode, call) })
		}
		t.Run(fmt.Sprintf("%s in the way of each other", mode), func(t *testing.T) { testContention(t, l.copy(t, mode), mode) })
	}
	t.Run("sessions that are ended", func(t *testing.T) { testLostSessions(t, l.copy(t, Compatible)) })
	t.Run("keying", func(t *testing.T) { testKeying(t, l.copy(t, Compatible)) })
	t.Run("broken off", func(t *testing.T) { testRunBrokenOff(t, l.copy(t, Compatible)) })
	t.Run("a user that hangs", func(t *testing.T) { testHangingUser(t, l.copy(t, Compatible)) })
	t.Run("refused", func(t *testing.T) { testRefused(t, l) })
	t.Run("a crash", func(t *testing.T) { testCrash(t, l) }) // last, as it ends all sessions
}

// All transactions work and are counted, the figures fit together, and the database is consistent.
func testRun(t *testing.T, config *pgx.ConnConfig, mode Mode, call Call) {
	conn := connect(t, config)
	var stages []Stage
	o := short(mode, call)
	o.OnStage = func(s Stage, _ time.Time) { stages = append(stages, s) }
	r, err := Run(t.Context(), config, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("NOPM %.0f, TPM %.0f, ratio %.2f, %.2f processors", r.NOPM, r.TPM, r.Ratio(), r.Processors())
	mustHold(t, conn)
	if diff := cmp.Diff([]Stage{Spawning, RampingUp, Measuring, Ending}, stages); diff != "" {
		t.Errorf("stages: %s", diff)
	}
	if len(r.Errors()) > 0 || len(r.OutsideErrors) > 0 || r.Reconnected > 0 || r.ServerChanged {
		t.Errorf("errors %v, before and after %v, texts %v", r.Errors(), r.OutsideErrors, r.ErrorTexts)
	}
	// The server's counts are up to a second old, at both ends of seconds.
	if r.NOPM <= 0 || r.Ratio() < 1.6 || r.Ratio() > 3.2 {
		t.Errorf("NOPM %.0f, TPM %.0f, ratio %.2f", r.NOPM, r.TPM, r.Ratio())
	}
	if m := r.Measured(); m < o.Measure || m > 2*o.Measure {
		t.Errorf("%s were measured", m)
	}
	checkKinds(t, r)
	checkSeries(t, r)
	checkEffects(t, conn, r)
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func checkKinds(t *testing.T, r Result) {
	t.Helper()
	calls := int64(0)
	for i, k := range r.Kinds {
		if k.Kind != Kind(i) || k.Calls == 0 || k.P50 <= 0 || k.P50 > k.P95 || k.P95 > k.P999 || k.P999 > k.Max || k.Histogram == "" {
			t.Errorf("%+v", k)
		}
		calls += k.Calls
	}
	// Orders are counted on the server, calls here. A few are under way at both ends.
	done := r.Kinds[form.NewOrder].Calls - r.Kinds[form.NewOrder].RolledBack
	if diff := done - r.Orders; diff < -20 || diff > 20 {
		t.Errorf("%d orders on the server, and %d here", r.Orders, done)
	}
	if ratio := float64(calls) / float64(r.Kinds[form.NewOrder].Calls); ratio < 2.1 || ratio > 2.5 {
		t.Errorf("there are %.2f calls for each new order", ratio)
	}
	if share := float64(r.Kinds[form.Payment].Calls) / float64(calls); share < 0.38 || share > 0.49 {
		t.Errorf("%.2f of the calls are payments", share)
	}
	if r.Processors() <= 0 || r.Processors() > 2 {
		t.Errorf("the driver kept %.2f processors busy", r.Processors())
	}
}

func checkSeries(t *testing.T, r Result) {
	t.Helper()
	inSeries, calls := int64(0), int64(0)
	from, to := r.From.Sub(r.Began).Seconds(), r.To.Sub(r.Began).Seconds()
	for _, s := range r.Seconds {
		if float64(s.Second) >= from-1 && float64(s.Second) < to {
			inSeries += s.Sum()
		}
		if s.Sum() > 0 && (s.P50 <= 0 || s.P50 > s.P99 || s.P99 > s.Max) {
			t.Errorf("second %d: %+v", s.Second, s)
		}
	}
	for _, k := range r.Kinds {
		calls += k.Calls
	}
	// The series has whole seconds, so more than what was measured.
	if calls > inSeries || float64(inSeries) > 2*float64(calls) {
		t.Errorf("%d in the series, %d measured", inSeries, calls)
	}
}

// checkEffects looks for what the modes do differently.
func checkEffects(t *testing.T, conn *pgx.Conn, r Result) {
	t.Helper()
	const fresh = "o_entry_d > (SELECT min(o_entry_d) FROM lab.orders)"
	orders := number(t, conn, "SELECT count(*) FROM lab.orders WHERE "+fresh)
	unused := number(t, conn, "SELECT count(*) FROM lab.order_line WHERE ol_i_id = 100001")
	counters := number(t, conn, `SELECT (SELECT sum(s_ytd + s_order_cnt + s_remote_cnt) FROM lab.stock)
		+ (SELECT sum(c_payment_cnt - 1 + c_delivery_cnt) FROM lab.customer)`)
	rolledBack := float64(r.Kinds[form.NewOrder].RolledBack)
	share := rolledBack / float64(r.Kinds[form.NewOrder].Calls)
	if r.Mode == Compatible {
		if rolledBack > 0 || unused < orders*0.002 || unused > orders*0.03 || counters > 0 {
			t.Errorf("%.0f rolled back, %.0f of %.0f orders of the unused item, counters %.0f", rolledBack, unused, orders, counters)
		}
		if n := number(t, conn, "SELECT count(*) FROM lab.order_line WHERE ol_i_id = 100001 AND ol_amount IS NOT NULL AND ol_dist_info IS NOT NULL"); n > unused/2 {
			t.Errorf("%.0f of %.0f lines of the unused item cost something", n, unused)
		}
		return
	}
	if share < 0.002 || share > 0.03 || unused > 0 {
		t.Errorf("%.4f of the orders were rolled back, %.0f of the unused item were not", share, unused)
	}
	ordered := number(t, conn, "SELECT sum(ol_quantity) FROM lab.orders JOIN lab.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE "+fresh)
	if taken := number(t, conn, "SELECT sum(s_ytd) FROM lab.stock"); taken != ordered {
		t.Errorf("%.0f were ordered and %.0f taken from stock", ordered, taken)
	}
	lines := number(t, conn, "SELECT sum(o_ol_cnt) FROM lab.orders WHERE "+fresh)
	if taken := number(t, conn, "SELECT sum(s_order_cnt) FROM lab.stock"); taken != lines {
		t.Errorf("%.0f lines, and stock was taken %.0f times", lines, taken)
	}
	remote := number(t, conn, "SELECT count(*) FROM lab.order_line WHERE ol_supply_w_id <> ol_w_id")
	if taken := number(t, conn, "SELECT sum(s_remote_cnt) FROM lab.stock"); taken != remote || remote == 0 {
		t.Errorf("%.0f remote lines, and stock was taken from afar %.0f times", remote, taken)
	}
	paid := number(t, conn, "SELECT sum(h_amount) FROM lab.history")
	if told := number(t, conn, "SELECT sum(c_ytd_payment) FROM lab.customer"); told != paid {
		t.Errorf("%.2f were paid, and customers paid %.2f", paid, told)
	}
	if n := number(t, conn, `SELECT count(*) FROM lab.customer WHERE c_balance <> -c_ytd_payment + coalesce((
		SELECT sum(ol_amount) FROM lab.orders JOIN lab.order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
		WHERE o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id AND ol_delivery_d IS NOT NULL), 0) AND c_id <= 300`); n > 0 {
		t.Errorf("%.0f customers have another balance than their orders and payments say", n)
	}
}

// Many users at one warehouse stand in each other's way. What is tried again is counted, and nothing
// is done twice.
func testContention(t *testing.T, config *pgx.ConnConfig, mode Mode) {
	conn := connect(t, config)
	// Serializable transactions fail where others only wait.
	execute(t, conn, "ALTER DATABASE "+config.Database+" SET default_transaction_isolation = 'repeatable read'")
	for _, call := range []Call{Procedures, ClientSQL} {
		o := short(mode, call)
		o.Users, o.AllWarehouses, o.Measure = 8, false, 2*time.Second
		r, err := Run(t.Context(), config, o)
		if err != nil {
			t.Fatal(err)
		}
		retries := int64(0)
		for _, k := range r.Kinds {
			retries += k.Retries
		}
		t.Logf("%s: NOPM %.0f, %d retries, errors %v, shared homes %d", call, r.NOPM, retries, r.Errors(), r.SharedHomes)
		if r.SharedHomes < 6 {
			t.Errorf("%s: %d of 8 users share the homes of 2 warehouses", call, r.SharedHomes)
		}
		if tried := retries > 0; tried != (call == ClientSQL || mode == Specification) {
			t.Errorf("%s: %d retries", call, retries)
		}
		if failed := r.Errors()["40001"] > 0; call == Procedures && mode == Compatible && !failed {
			t.Errorf("%s: errors %v", call, r.Errors())
		}
		for state, n := range r.Errors() {
			if state != "40001" && state != "40P01" {
				t.Errorf("%s: %d errors %s: %s", call, n, state, r.ErrorTexts[state])
			}
		}
	}
	mustHold(t, conn)
}

// Sessions that an administrator ends are counted and begun anew.
func testLostSessions(t *testing.T, config *pgx.ConnConfig) {
	conn := connect(t, config)
	o := short(Compatible, ClientSQL)
	measuring := make(chan struct{})
	o.OnStage = func(s Stage, _ time.Time) {
		if s == Measuring {
			close(measuring)
		}
	}
	var ending sync.WaitGroup
	ending.Go(func() {
		<-measuring
		ended := 0.0
		testkit.Eventually(t, 10*time.Second, func() error {
			// The users' sessions only: the monitor reads, and ends no transaction.
			ended += number(t, conn, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
				WHERE application_name = 'howdah_lab' AND datname = current_database() AND query NOT LIKE '%pg_stat_database%'`)
			if ended < 3 {
				return fmt.Errorf("%.0f sessions were ended", ended)
			}
			return nil
		})
	})
	r, err := Run(t.Context(), config, o)
	if err != nil {
		t.Fatal(err)
	}
	ending.Wait()
	lost := int64(0)
	for _, k := range r.Kinds {
		lost += k.Lost
	}
	if lost < 3 || r.Reconnected != lost || r.Errors()["57P01"] < 3 {
		t.Errorf("%d sessions were lost, %d begun anew, errors %v", lost, r.Reconnected, r.Errors())
	}
	if last := r.Seconds[len(r.Seconds)-1]; last.Sum() == 0 && r.Seconds[len(r.Seconds)-2].Sum() == 0 {
		t.Errorf("nothing happens at the end: %+v", last)
	}
	mustHold(t, conn)
}

// Users that type and think do little, and end at once.
func testKeying(t *testing.T, config *pgx.ConnConfig) {
	o := short(Compatible, Procedures)
	o.Keying, o.Measure = true, time.Second
	var ending time.Time
	o.OnStage = func(s Stage, at time.Time) {
		if s == Ending {
			ending = at
		}
	}
	r, err := Run(t.Context(), config, o)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(ending); took > graceTime {
		t.Errorf("it took %s to end", took)
	}
	calls := int64(0)
	for _, k := range r.Kinds {
		calls += k.Calls
	}
	if calls > 10 {
		t.Errorf("%d calls of 3 users in a second", calls)
	}
}

// A run that is broken off returns what it has.
func testRunBrokenOff(t *testing.T, config *pgx.ConnConfig) {
	o := short(Compatible, Procedures)
	o.Measure = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	measuring := make(chan struct{})
	o.OnStage = func(s Stage, _ time.Time) {
		if s == Measuring {
			close(measuring)
		}
	}
	conn := connect(t, config)
	var breaking sync.WaitGroup
	breaking.Go(func() {
		<-measuring
		defer cancel()
		const orders = "SELECT sum(d_next_o_id) FROM lab.district"
		before := number(t, conn, orders)
		testkit.Eventually(t, 20*time.Second, func() error {
			if n := number(t, conn, orders) - before; n < 300 {
				return fmt.Errorf("%.0f orders", n)
			}
			return nil
		})
	})
	r, err := Run(ctx, config, o)
	breaking.Wait()
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if r.Orders == 0 || r.NOPM == 0 || len(r.Seconds) == 0 {
		t.Errorf("%+v", r)
	}
	mustHold(t, conn)
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := number(t, conn, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'howdah_lab' AND datname = current_database()"); n > 0 {
			return fmt.Errorf("%.0f sessions are left", n)
		}
		return nil
	})
}

// Users that wait for what never comes are broken off at the end.
func testHangingUser(t *testing.T, config *pgx.ConnConfig) {
	blocker := connect(t, config)
	o := short(Compatible, Procedures)
	o.Measure = time.Second
	o.OnStage = func(s Stage, _ time.Time) {
		if s == Measuring {
			execute(t, blocker, "BEGIN", "LOCK TABLE howdah_lab.district IN EXCLUSIVE MODE")
		}
	}
	began := time.Now()
	r, err := Run(t.Context(), config, o)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < graceTime || took > 3*graceTime+o.Measure {
		t.Errorf("it took %s", took)
	}
	if len(r.Errors()) > 0 {
		t.Errorf("errors %v", r.Errors())
	}
	execute(t, blocker, "ROLLBACK")
	mustHold(t, blocker)
}

// What cannot be is refused before anything runs.
func testRefused(t *testing.T, l *lab) {
	config := l.copy(t, Compatible)
	conn := connect(t, config)
	standby := l.Follow("standby", pgtest.Options{}).Config()
	standby.Database = config.Database
	execute(t, conn, "CREATE ROLE narrow LOGIN SUPERUSER CONNECTION LIMIT 5")
	narrow := config.Copy()
	narrow.User = "narrow"
	for name, c := range map[string]struct {
		config *pgx.ConnConfig
		spoil  func(*RunOptions)
		want   error
		says   string
	}{
		"the other mode":      {config, func(o *RunOptions) { o.Mode = Specification }, ErrOtherMode, "compatible"},
		"another schema":      {config, func(o *RunOptions) { o.Schema = "elsewhere" }, ErrNone, "elsewhere"},
		"too many users":      {config, func(o *RunOptions) { o.Users = 100 }, ErrNoRoom, "max_connections is 40"},
		"one too many":        {config, func(o *RunOptions) { o.Users = 36 }, ErrNoRoom, "36 are asked for, and there is room for"},
		"too many in turn":    {config, func(o *RunOptions) { o.Users, o.Targets = 60, []*pgx.ConnConfig{config, config} }, ErrNoRoom, "60 are asked for"},
		"a standby":           {standby, func(*RunOptions) {}, ErrStandby, "standby"},
		"a standby among":     {config, func(o *RunOptions) { o.Targets = []*pgx.ConnConfig{config, standby} }, ErrStandby, "target"},
		"the role's limit":    {narrow, func(o *RunOptions) { o.Users = 5 }, ErrNoRoom, "role"},
		"no such reach":       {config, func(o *RunOptions) { o.Reach = "far" }, form.ErrReach, "far"},
		"reach of procedures": {config, func(o *RunOptions) { o.Reach, o.Mode, o.Call = form.Away, form.Compatible, form.Procedures }, ErrOption, "reach"},
		"no users":            {config, func(o *RunOptions) { o.Users = 0 }, ErrOption, "users"},
		"less than a second":  {config, func(o *RunOptions) { o.Measure = 0 }, ErrOption, "measured time"},
	} {
		o := short(Compatible, Procedures)
		c.spoil(&o)
		o.OnStage = func(s Stage, _ time.Time) { t.Errorf("%s: the stage %s begins", name, s) }
		if _, err := Run(t.Context(), c.config, o); !errors.Is(err, c.want) || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := number(t, conn, "SELECT sum(d_next_o_id - 3001) FROM lab.district"); n != 0 {
		t.Errorf("%.0f orders", n)
	}
	execute(t, conn, "DROP ROLE narrow")
}

// The server dies under the users and comes back. The run goes on, and says that it does not know the
// server's own counts.
func testCrash(t *testing.T, l *lab) {
	config := l.of(string(Compatible))
	o := short(Compatible, Procedures)
	o.Measure = 6 * time.Second
	measuring := make(chan struct{})
	o.OnStage = func(s Stage, _ time.Time) {
		if s == Measuring {
			close(measuring)
		}
	}
	var crashing sync.WaitGroup
	crashing.Go(func() {
		<-measuring
		l.Kill()
		l.Up()
	})
	r, err := Run(t.Context(), config, o)
	crashing.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if !r.ServerChanged || r.TPM != 0 || r.NOPM <= 0 {
		t.Errorf("NOPM %.0f, TPM %.0f, changed %t", r.NOPM, r.TPM, r.ServerChanged)
	}
	if r.Reconnected != int64(o.Users) || len(r.Errors()) == 0 {
		t.Errorf("%d sessions were begun anew, errors %v, refused %d", r.Reconnected, r.Errors(), r.Refused)
	}
	mustHold(t, connect(t, config))
}
