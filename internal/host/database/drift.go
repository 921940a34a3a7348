package database

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"os"
	"strings"
	"time"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/postgres"
	"howdah/internal/model/patroni"
)

// What a member runs with is held against the content of its assignment, and not against
// its generation alone: an agent of an older release drops the fields that it does not
// know, and keeps and applies the rest under the same number.

// driftEvery is how often files and Patroni are looked at, and for how long Patroni may
// take to say that it has taken a configuration over.
const driftEvery = 10 * time.Second

// told is the configuration that Patroni was told of last.
type told struct {
	at     time.Time
	hosts  []string // of etcd; they come and go by themselves, and Patroni follows them
	digest string
}

// checkDrift has the configuration brought again where the member does not run with it.
func (s *settings) checkDrift() {
	now := time.Now()
	if s.rendered != s.Want.Generation || now.Sub(s.driftLooked) < s.host.driftEvery {
		return
	}
	s.driftLooked = now
	if why := s.drift(now); why != "" {
		s.Log.Warn("the member does not run with its configuration, bringing it again", "why", why)
		s.rendered = 0
	}
}

// drift says in what the member differs from its assignment, or "".
func (s *settings) drift(now time.Time) string {
	m, text, _, err := s.intended(s.told.hosts)
	if err != nil {
		return "" // a start or a reload tells of it
	}
	if s.differs(m.ConfigPath(), text) {
		return patroni.ConfigFile + " is another one"
	}
	if now.Sub(s.told.at) < s.host.driftEvery {
		return ""
	}
	if said := s.leases.Said(); said.Known && said.Config != s.told.digest {
		return "Patroni has not taken it over"
	}
	if s.Reported.Ready && s.differs(m.HBAPath(), m.HBA()) {
		return "pg_hba.conf is another one"
	}
	return ""
}

// differs: the file has other content; one that cannot be read is judged by whoever needs it.
func (s *settings) differs(path string, content []byte) bool {
	now, err := s.User().ReadFile(path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !bytes.Equal(now, content)
}

// intended is the configuration that the assignment makes, with these hosts of etcd.
func (s *settings) intended(hosts []string) (m config.Member, text []byte, digest string, err error) {
	install, err := postgres.Find(s.Want.Major)
	if err != nil {
		return m, nil, "", err
	}
	modules, err := postgres.Modules(install.Major)
	if err != nil {
		return m, nil, "", err
	}
	m = s.host.patroniMember(s.Want, install, hosts)
	m.Modules = modules
	if postgres.HasCache(modules) {
		m.Parameters = withCache(m.Parameters, m.Cluster.Parameters)
	}
	if s.Leader.Alive() {
		m.Name = s.named // it takes no other while it runs
	}
	m.Keys.Own = s.showsOwn()
	text, digest, err = config.Render(m)
	return m, text, digest, err
}

// withCache returns a member's own settings with the library of cluster cache management; shared are
// those of all members. Each agent knows what its host has: a server does not start that is to load a
// library which is not there.
func withCache(own, shared map[string]string) map[string]string {
	const libraries = "shared_preload_libraries"
	all := map[string]string{}
	maps.Copy(all, own)
	listed := cmp.Or(all[libraries], shared[libraries])
	all[libraries] = strings.TrimPrefix(listed+","+patroni.CacheLibrary, ",")
	all["ccm.database"] = "rdsadmin"
	return all
}
