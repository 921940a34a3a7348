package backups

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"howdah/internal/admin"
	"howdah/internal/admin/client"
	"howdah/internal/cli"
	"howdah/internal/system/plainfile"
)

func newBackupMetrics(o *cli.Options) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "metrics", Short: "Print what is known of backups and drills as metrics for Prometheus",
		Long: "Prints metrics of all databases of your account and region, in Prometheus's text format. With --to they are written to a file, " +
			"which is replaced at once: run it each minute for the textfile collector of node_exporter. What is not known has no sample.",
		Args:    cli.Args(cobra.NoArgs),
		Example: "  howdah backup metrics\n  howdah backup metrics --to /var/lib/prometheus/node-exporter/howdah.prom",
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := backupStatuses(cmd, o)
			if err != nil {
				return err
			}
			text := metricsText(all)
			if to == "" {
				_, err := o.Screen.Stdout.Write(text)
				return err
			}
			to, err := filepath.Abs(to)
			if err != nil {
				return err
			}
			return plainfile.Replace(to, text, 0o644)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "replace this `file`")
	return cmd
}

// backupStatuses asks for each database that has backups, or is to have some.
func backupStatuses(cmd *cobra.Command, o *cli.Options) ([]measured, error) {
	status, err := o.AskStatus(cmd)
	if err != nil {
		return nil, err
	}
	var all []measured
	for _, d := range status.Databases {
		if d.Backups == nil || d.Account != status.Account || d.Region != status.Region {
			continue
		}
		s, err := cli.AskAdmin[admin.BackupStatus](cmd, o, admin.VerbBackupShow, admin.BackupsRequest{Name: d.Name})
		if client.IsCode(err, admin.CodeDatabaseNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, measured{s, "db" + d.Kind})
	}
	return all, nil
}

// measured is what is known of one database.
type measured struct {
	admin.BackupStatus
	label string // that has its name: dbinstance or dbcluster
}

// metric is one gauge. value returns false if nobody knows it.
type metric struct {
	name, help string
	value      func(s admin.BackupStatus) (float64, bool)
}

var metrics = []metric{
	{"retention_days", "Days of automated backups; 0: they are off.", func(s admin.BackupStatus) (float64, bool) { return float64(s.Short.Retention), true }},
	{"kept", "Backups that are whole in the repository.", func(s admin.BackupStatus) (float64, bool) { return float64(s.Short.Count), true }},
	{"stored_bytes", "Bytes that these take, without WAL.", func(s admin.BackupStatus) (float64, bool) { return float64(s.Stored), true }},
	{"newest_timestamp_seconds", "When the newest backup was made.", func(s admin.BackupStatus) (float64, bool) {
		if s.Newest == nil {
			return 0, false
		}
		return moment(s.Newest.Taken)
	}},
	{"earliest_restorable_timestamp_seconds", "Oldest moment that can be restored.", func(s admin.BackupStatus) (float64, bool) { return moment(s.Short.Earliest) }},
	{"latest_restorable_timestamp_seconds", "Newest moment that can be restored.", func(s admin.BackupStatus) (float64, bool) { return moment(s.Short.Restorable) }},
	{"archive_works", "1 if WAL is archived, 0 if it waits or was given up.", func(s admin.BackupStatus) (float64, bool) {
		return yes(s.Archive == admin.ArchiveWorks), s.Archive != admin.ArchiveUnknown
	}},
	{"wal_waiting_bytes", "Bytes of WAL that wait to be archived.", func(s admin.BackupStatus) (float64, bool) {
		return float64(s.Waiting), s.Archive != admin.ArchiveUnknown
	}},
	{"drill_success_timestamp_seconds", "When a drill worked last.", func(s admin.BackupStatus) (float64, bool) { return moment(s.Short.Proved) }},
	{"drill_timestamp_seconds", "When the newest drill ended.", ofDrill(func(d admin.Drill) (float64, bool) { return moment(d.Ended) })},
	{"drill_success", "1 if the newest drill worked.", ofDrill(func(d admin.Drill) (float64, bool) { return yes(d.Failed == ""), true })},
	{"drill_rto_seconds", "How long the newest drill took until clients would have been let in.", ofDrill(func(d admin.Drill) (float64, bool) {
		return d.RTO, d.Restored
	})},
	{"drill_rpo_seconds", "How old the newest commit was that the newest drill brought back, when it began.", ofDrill(func(d admin.Drill) (float64, bool) {
		if d.RPO == nil {
			return 0, false
		}
		return *d.RPO, true
	})},
}

// ofDrill is a value of the newest drill, if there is one.
func ofDrill(value func(d admin.Drill) (float64, bool)) func(s admin.BackupStatus) (float64, bool) {
	return func(s admin.BackupStatus) (float64, bool) {
		if s.Drill == nil {
			return 0, false
		}
		return value(*s.Drill)
	}
}

func moment(t time.Time) (float64, bool) { return float64(t.UnixMicro()) / 1e6, !t.IsZero() }

func yes(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// metricsText is Prometheus's text format, version 0.0.4.
func metricsText(all []measured) []byte {
	var text bytes.Buffer
	for _, m := range metrics {
		name := "howdah_backup_" + m.name
		for n, s := range all {
			if n == 0 {
				fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s gauge\n", name, m.help, name)
			}
			if value, known := m.value(s.BackupStatus); known {
				fmt.Fprintf(&text, "%s{%s=\"%s\",resource_id=\"%s\"} %s\n", name, s.label,
					labelEscapes.Replace(s.Database), labelEscapes.Replace(s.ResourceID), strconv.FormatFloat(value, 'f', -1, 64))
			}
		}
	}
	return text.Bytes()
}
