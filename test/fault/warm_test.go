package fault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"howdah/api/rds"
	"howdah/internal/testkit/depth"
	"howdah/internal/testkit/pgversion"
	"howdah/internal/testkit/rig"
)

// Cluster cache management as Aurora's users set it up: a cluster parameter, and promotion tier 0 for
// the writer and one reader. What is hot in the writer's cache is in the reader's before that takes
// over. Then the roles change by themselves.
func TestAFailoverMeetsAWarmCache(t *testing.T) {
	s := begin(t, nil)
	s.must(s.rig.CreateCluster(s.Context(), "shop", 2), "create the cluster")
	id := s.clusterID("shop")
	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })
	if _, err := s.hotBuffers("shop"); err == nil || !strings.Contains(err.Error(), "Cluster Cache Manager is disabled") {
		t.Fatalf("before it is enabled: %v", err)
	}
	s.enableCaches("shop")
	s.eventually(30*time.Second, func() error { return s.clusterTells("shop", "the writer has not promotion tier 0") })
	for _, instance := range []string{"shop-1", "shop-2"} {
		s.must(s.rig.WaitStatus(s.Context(), instance, "available", time.Minute), "wait for "+instance)
		s.must(s.rig.Call(s.Context(), "ModifyDBInstance", &rds.ModifyDBInstanceMessage{
			DBInstanceIdentifier: &instance, PromotionTier: new(int32(0)), ApplyImmediately: new(true),
		}, &rds.ModifyDBInstanceResult{}), "give "+instance+" promotion tier 0")
	}
	s.eventually(time.Minute, func() error { return s.clusterTells("shop", "Cluster cache management is on") })

	writer, reader := s.leader(id), s.standby(id)
	for _, sql := range []string{"CREATE EXTENSION pg_buffercache SCHEMA public", "CREATE TABLE public.goods AS SELECT n, repeat('x', 200) AS what FROM generate_series(1, 100000) n", "VACUUM ANALYZE public.goods"} {
		_, err := s.onSocket(writer, "postgres", sql)
		s.must(err, sql)
	}
	// What replay has brought into the reader's cache is gone with it.
	s.must(reader.KillPostgres(), "kill PostgreSQL of the reader")
	s.warms("shop", writer, reader)

	s.eventually(time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })
	s.must(s.rig.Call(s.Context(), "FailoverDBCluster", &rds.FailoverDBClusterMessage{DBClusterIdentifier: new("shop")}, &rds.FailoverDBClusterResult{}), "fail over")
	s.eventually(time.Minute, func() error {
		now, err := s.rig.Leader(s.Context(), id)
		if err == nil && now.Name != reader.Name {
			err = fmt.Errorf("%s leads", now.Name)
		}
		return err
	})
	s.warms("shop", reader, writer)
	s.remembers(reader, writer)
}

// remembers checks that a primary reads again what it had cached when it is started again, and that its
// standby has no list of that.
func (s *story) remembers(primary, standby rig.Member) {
	s.Helper()
	s.eventually(30*time.Second, func() error {
		if _, err := os.Stat(filepath.Join(standby.DataDir(), "autoprewarm.blocks")); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the standby has a list: %w", err)
		}
		_, err := s.onSocket(primary, "rdsadmin", "SELECT pg_catalog.howdah_remember()")
		return err
	})
	const cached = "SELECT count(*) FROM public.pg_buffercache WHERE relfilenode = pg_relation_filenode('public.goods')"
	had, err := s.onSocket(primary, "postgres", cached)
	s.must(err, "look at the cache")
	s.must(s.rig.Call(s.Context(), "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new("shop-2")}, &rds.RebootDBInstanceResult{}), "reboot the writer")
	s.eventually(time.Minute, func() error {
		has, err := s.onSocket(primary, "postgres", cached)
		if err == nil && has != had {
			err = fmt.Errorf("it had %s pages before it was started again, and has %s", had, has)
		}
		return err
	})
}

// warms waits until what is read again and again on the writer of a cluster is in its reader's cache.
func (s *story) warms(name string, writer, reader rig.Member) {
	s.Helper()
	s.eventually(2*time.Minute, func() error {
		_, err := s.onSocket(writer, "postgres", "SELECT count(*) FROM public.goods")
		hot, asked := s.hotBuffers(name)
		if asked == nil && hot == 0 {
			asked = errors.New("the writer has found nothing hot yet")
		}
		return errors.Join(err, asked, s.alike(writer, reader))
	})
}

// alike returns nil once a standby has what is hot of a table in its primary's cache.
func (s *story) alike(primary, standby rig.Member) error {
	const sql = "SELECT count(*) FROM public.pg_buffercache WHERE relfilenode = pg_relation_filenode('public.goods') AND usagecount >= %d"
	hot, err := s.onSocket(primary, "postgres", fmt.Sprintf(sql, 3))
	if err != nil {
		return err
	}
	have, err := s.onSocket(standby, "postgres", fmt.Sprintf(sql, 1))
	if err != nil {
		return err
	}
	h, _ := strconv.Atoi(hot)
	if n, _ := strconv.Atoi(have); h < 1000 || n < h*99/100 {
		return fmt.Errorf("%s buffers are hot, and the standby has %s of the table", hot, have)
	}
	return nil
}

// hotBuffers is what the writer of a cluster found to be hot, as any user may ask.
func (s *story) hotBuffers(name string) (n int, err error) {
	config, err := s.rig.ClusterConfig(s.Context(), name)
	if err == nil {
		err = s.answers(config, "SELECT coalesce(buffers_found_last_scan, 0) FROM aurora_ccm_status()", &n)
	}
	return n, err
}

// clusterTells returns nil if an event of a cluster has these words.
func (s *story) clusterTells(name, words string) error {
	var out rds.EventsMessage
	if err := s.rig.Call(s.Context(), "DescribeEvents", &rds.DescribeEventsMessage{SourceIdentifier: &name, SourceType: new("db-cluster")}, &out); err != nil {
		return err
	}
	var all []string
	for _, e := range out.Events {
		all = append(all, *e.Message)
	}
	if text := strings.Join(all, "; "); !strings.Contains(text, words) {
		return fmt.Errorf("no event says %q: %s", words, text)
	}
	return nil
}

func (s *story) clusterID(name string) string {
	s.Helper()
	c, err := s.rig.Cluster(s.Context(), name)
	s.must(err, "find the cluster")
	return *c.DbClusterResourceId
}

// enableCaches gives a cluster a parameter group with apg_ccm_enabled.
func (s *story) enableCaches(name string) {
	s.Helper()
	group, family := "warm", fmt.Sprintf("aurora-postgresql%d", pgversion.Major())
	s.must(s.rig.Call(s.Context(), "CreateDBClusterParameterGroup", &rds.CreateDBClusterParameterGroupMessage{
		DBClusterParameterGroupName: &group, DBParameterGroupFamily: &family, Description: new("of a story"),
	}, &rds.CreateDBClusterParameterGroupResult{}), "make a parameter group")
	values := []rds.Parameter{{ParameterName: new("apg_ccm_enabled"), ParameterValue: new("1"), ApplyMethod: new("immediate")}}
	s.must(s.rig.Call(s.Context(), "ModifyDBClusterParameterGroup", &rds.ModifyDBClusterParameterGroupMessage{
		DBClusterParameterGroupName: &group, Parameters: values,
	}, &rds.DBClusterParameterGroupNameMessage{}), "enable it")
	s.must(s.rig.Call(s.Context(), "ModifyDBCluster", &rds.ModifyDBClusterMessage{
		DBClusterIdentifier: &name, DBClusterParameterGroupName: &group, ApplyImmediately: new(true),
	}, &rds.ModifyDBClusterResult{}), "assign it")
	s.must(s.rig.Call(s.Context(), "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new(name + "-1")}, &rds.RebootDBInstanceResult{}), "reboot the writer")
	s.must(s.rig.WaitStatus(s.Context(), name+"-1", "available", time.Minute), "wait for the writer")
}

// A database that runs since the release before has not loaded the library. Its agents keep the
// standby's cache like its primary's all the same, and nothing is started anew for it. A failover that
// is asked for starts all members anew: then they have the library.
func TestAWarmStandbyWithoutTheLibrary(t *testing.T) {
	depth.One(t, longest...)
	s := older(t, append([]string{"serve", "edge"}, agents...)...)
	id := s.given("orders", true)
	began := s.startedAt()
	s.upgrade(append([]string{"serve", "edge"}, agents...)...)
	s.eventually(60*time.Second, s.isWell)
	s.must(s.rig.Tag(s.Context(), "orders", "howdah:warm-standby", "true"), "ask for a warm standby")
	primary, standby := s.leader(id), s.standby(id)
	for _, sql := range []string{"CREATE EXTENSION pg_buffercache SCHEMA public", "CREATE TABLE public.goods AS SELECT n, repeat('x', 200) AS what FROM generate_series(1, 100000) n", "VACUUM ANALYZE public.goods"} {
		_, err := s.onSocket(primary, "postgres", sql)
		s.must(err, sql)
	}
	s.fills(primary, standby, "its agent sees to it until PostgreSQL is rebooted")
	if now := s.startedAt(); now != began {
		t.Errorf("PostgreSQL was started at %s, and then at %s", began, now)
	}
	s.must(s.rig.Call(s.Context(), "RebootDBInstance", &rds.RebootDBInstanceMessage{DBInstanceIdentifier: new("orders"), ForceFailover: new(true)}, &rds.RebootDBInstanceResult{}), "fail over")
	s.primary(id, standby.Name, time.Minute)
	s.eventually(2*time.Minute, func() error { return s.rig.InSync(s.Context(), id, 1) })
	for _, m := range []rig.Member{primary, standby} {
		loaded, err := s.onSocket(m, "postgres", "SHOW shared_preload_libraries")
		if s.must(err, "ask for the libraries"); !strings.Contains(loaded, "ccm") {
			t.Errorf("%s has loaded %s", m.Name, loaded)
		}
	}
	s.fills(standby, primary, "")
}

// fills waits until what is read again and again on the primary is in the standby's cache, and until
// `howdah db show` says so, and who brought it there.
func (s *story) fills(primary, standby rig.Member, by string) {
	s.Helper()
	s.eventually(3*time.Minute, func() error {
		_, err := s.onSocket(primary, "postgres", "SELECT count(*) FROM public.goods")
		shown, told := s.howdah("db", "show", "orders")
		outside := "its agent sees to it until PostgreSQL is rebooted"
		if told == nil && (!strings.Contains(shown, "the cache of "+standby.Name+" has ") || !strings.Contains(shown, by) || by == "" && strings.Contains(shown, outside)) {
			told = errors.New(shown)
		}
		return errors.Join(err, told, s.alike(primary, standby))
	})
}
