package database

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"time"

	"howdah/internal/engine/patroni/config"
	"howdah/internal/engine/postgres"
	"howdah/internal/host/agent"
	"howdah/internal/host/database/aside"
	"howdah/internal/host/database/keys"
	"howdah/internal/host/database/origin"
	"howdah/internal/host/database/spare"
	"howdah/internal/host/database/watchdog"
	"howdah/internal/identity/certs"
	"howdah/internal/model/patroni"
)

// settings is what the Patroni of a member is told in files, and what the one that runs was started
// with. It belongs to the goroutine of the member.
type settings struct {
	*agent.Member
	host     *Host
	keys     *keys.Ring
	aside    *aside.Data
	taker    *spare.Taker
	leases   *watchdog.Lease
	archiver *archiver

	named       string    // what the running Patroni calls itself
	ownKey      bool      // it shows the member's own key
	rendered    int64     // generation of the configuration on disk; 0: it is to be brought again
	told        told      // what that was made of
	driftLooked time.Time // when the member was held against its configuration last
	certLooked  time.Time // when the certificate was looked at last
}

// render writes what Patroni needs: certificates, the scripts that stand for programs of
// PostgreSQL, what has it write whole files, and the configuration, which it answers.
func (s *settings) render(ctx context.Context) (m config.Member, err error) {
	install, err := postgres.Find(s.Want.Major)
	if err != nil {
		return m, err
	}
	if err := s.host.MakeMemberDir(s.ID); err != nil {
		return m, err
	}
	for _, dir := range []string{patroni.CertDir, patroni.OwnDir, patroni.LogDir, patroni.PythonDir} {
		if err := s.User().MakeDir(filepath.Join(s.Dir(), dir)); err != nil {
			return m, err
		}
	}
	if err := s.keys.Ensure(ctx, s.showsOwn()); err != nil {
		return m, err
	}
	if err := s.scripts(install); err != nil {
		return m, err
	}
	if err := s.User().ReplaceFile(filepath.Join(s.Dir(), patroni.PythonDir, patroni.WholeFile), config.Whole, 0o600); err != nil {
		return m, err
	}
	if err := s.writeLDAP(); err != nil {
		return m, err
	}
	s.archiver.write()
	hosts, err := s.keys.EtcdHosts(s.showsOwn())
	if err != nil {
		return m, err
	}
	m, text, digest, err := s.intended(hosts)
	if err != nil {
		return m, err
	}
	s.told = told{hosts: hosts, digest: digest, at: time.Now()}
	return m, s.User().ReplaceFile(m.ConfigPath(), text, 0o600)
}

// scripts writes what stands for PostgreSQL's programs. A member that inherits its data is never
// handed an empty data directory.
func (s *settings) scripts(install postgres.Install) error {
	if s.Want.Inherits {
		return s.aside.Scripts(install, origin.Script(s.Dir()), s.host.program())
	}
	return errors.Join(s.aside.Scripts(install, s.host.spares.Script(s.ID), s.host.program()), s.taker.Open())
}

// renewCertificate has a certificate that ages written anew, with everything
// else, by the reload that follows.
func (s *settings) renewCertificate() {
	if time.Since(s.certLooked) < time.Hour {
		return
	}
	s.certLooked = time.Now()
	if !s.keys.Certified(s.showsOwn()) {
		s.rendered = 0
	}
}

// showsOwn: Patroni, as it runs or is to be started, shows the member's own key.
func (s *settings) showsOwn() bool {
	if s.Leader.Alive() {
		return s.ownKey
	}
	return s.Want.OwnKey()
}

// writeLDAP tells the library whom to believe, in place of what the host's own
// configuration says.
func (s *settings) writeLDAP() error {
	ca := filepath.Join(s.Dir(), patroni.CertDir, certs.CAFile)
	text := "TLS_CACERT " + ca + "\nTLS_REQCERT demand\nNETWORK_TIMEOUT 5\nTIMEOUT " + strconv.Itoa(ldapPatience) + "\n"
	return s.User().ReplaceFile(filepath.Join(s.Dir(), ldapFile), []byte(text), 0o600)
}

// admit writes who may log in to a server that runs. Patroni does so too, with the
// same content, but only in its next round, up to a second later: whoever may not
// connect any more is kept out at once.
func (s *settings) admit(m config.Member) error {
	now, err := s.User().ReadFile(m.HBAPath())
	if err != nil || bytes.Equal(now, m.HBA()) {
		return err
	}
	return s.User().ReplaceFile(m.HBAPath(), m.HBA(), 0o600)
}
