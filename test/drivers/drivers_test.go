package drivers

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"howdah/api/rds"
	"howdah/internal/testkit/rig"
)

// TestDrivers is the same for each language: the wrapper finds out what it is connected to, splits
// reading and writing, logs in with tokens, and follows the writer through failovers. The same
// program with the plain driver, at the writer endpoint, runs beside it.
func TestDrivers(t *testing.T) {
	f := begin(t, aurora, func(*rig.Options) {}, inHosts)
	f.takeTokens()
	f.eachLanguage(func(f *fleet, l language, command []string) {
		f.knowsItself(l, command)
		f.splits(l, command)
		if !l.iamInZone {
			f.token(l, command)
		}
		f.failovers(l, command, times(f, 10))
	})
}

// A Multi-AZ DB cluster in a home with a zone: its servers tell drivers the names of instances, and the
// wrapper makes other names of these. All of them are in the certificates, which the programs verify.
func TestMultiAZByNames(t *testing.T) {
	f := begin(t, multiAZ, func(o *rig.Options) { o.Serve = []string{"--dns-zone", zoneName} }, inZone)
	f.takeTokens()
	f.eachLanguage(func(f *fleet, l language, command []string) {
		f.knowsItself(l, command)
		f.findsTheDialect(l, command)
		f.splits(l, command)
		f.token(l, command)
		f.failovers(l, command, min(times(f, 3), 3))
	})
}

// eachLanguage runs a test for each language, or for that of HOWDAH_TEST_LANGUAGE.
func (f *fleet) eachLanguage(test func(f *fleet, l language, command []string)) {
	for _, l := range languages {
		if only := os.Getenv("HOWDAH_TEST_LANGUAGE"); only != "" && only != l.name {
			continue
		}
		f.Run(l.name, func(t *testing.T) {
			f := *f
			f.T = t
			test(&f, l, l.command(t))
		})
	}
}

// times is how often something is done to a cluster: HOWDAH_TEST_FAILOVERS, or what is usual.
func times(f *fleet, usual int) int {
	f.Helper()
	text := os.Getenv("HOWDAH_TEST_FAILOVERS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	f.must(err)
	return n
}

func (f *fleet) knowsItself(l language, command []string) {
	f.Helper()
	instance, _ := f.leader()
	if got := f.answers(l.name, append(slices.Clone(command), "who"), f.environment(l, "postgres", l.failover)); !slices.Equal(got, []string{instance}) {
		f.Errorf("connected to %q, and %s writes", got, instance)
	}
}

// findsTheDialect: a wrapper that is told no dialect asks the server which it has. Only Java's plugin
// initialConnection wants to know before.
func (f *fleet) findsTheDialect(l language, command []string) {
	f.Helper()
	instance, _ := f.leader()
	environment := f.environment(l, "postgres", l.detects, "DB_DIALECT=")
	if got := f.answers(l.name+" without a dialect", append(slices.Clone(command), "who"), environment); !slices.Equal(got, []string{instance}) {
		f.Errorf("without a dialect it is connected to %q, and %s writes", got, instance)
	}
}

// splits: what only reads goes to a reader, and back.
func (f *fleet) splits(l language, command []string) {
	f.Helper()
	writer, _ := f.leader()
	got := f.answers(l.name+" splits", append(slices.Clone(command), "split"), f.environment(l, "postgres", l.split))
	if len(got) != 3 || got[0] != writer || got[1] == writer || got[2] != writer {
		f.Errorf("writing, reading and writing lead to %q, and %s writes", got, writer)
	}
}

// takeTokens has the cluster take tokens, of jane.
func (f *fleet) takeTokens() {
	f.Helper()
	f.must(f.rig.Call(f.Context(), "ModifyDBCluster", &rds.ModifyDBClusterMessage{
		DBClusterIdentifier: new("shop"), EnableIAMDatabaseAuthentication: new(true), ApplyImmediately: new(true),
	}, &rds.ModifyDBClusterResult{}))
	f.exec("postgres", "CREATE ROLE jane LOGIN", "GRANT rds_iam TO jane")
}

// token: the plugin makes a token of the environment's access key.
func (f *fleet) token(l language, command []string) {
	f.Helper()
	environment := f.environment(l, "postgres", l.iam, "DB_USER=jane", "DB_PASSWORD=", "DB_IAM_HOST="+*f.writer.Endpoint, "DB_ASK=SELECT current_user",
		"AWS_ACCESS_KEY_ID=RIG", "AWS_SECRET_ACCESS_KEY=rig-secret", "AWS_REGION="+f.rig.Home.Region)
	if got := f.answers(l.name+" with a token", append(slices.Clone(command), "who"), environment); !slices.Equal(got, []string{"jane"}) {
		f.Errorf("a token logs in as %q", got)
	}
}
