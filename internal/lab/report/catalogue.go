package report

import (
	"maps"
	"slices"
	"strings"

	"howdah/internal/lab/experiment"
)

// known says what a figure is called, and in which table it is.
type known struct {
	experiment.Text
	unit  string
	group string
}

// The tables of figures, in their order.
var groups = []string{"throughput", "faults", "latency", "server", "wal", "waits", "other"}

// catalogue has the figures that steps make, by name, in the order of the tables.
var catalogue = []struct {
	name string
	known
}{
	{"tps", known{experiment.Text{English: "Throughput", Japanese: "スループット"}, "TPS", "throughput"}},
	{"nopm", known{experiment.Text{English: "New orders", Japanese: "新規注文"}, "NOPM", "throughput"}},
	{"tpm", known{experiment.Text{English: "Transactions", Japanese: "トランザクション"}, "TPM", "throughput"}},
	{"transactions", known{experiment.Text{English: "Transactions", Japanese: "トランザクション数"}, "", "throughput"}},
	{"failed", known{experiment.Text{English: "Failed", Japanese: "失敗"}, "", "throughput"}},
	{"late", known{experiment.Text{English: "Later than their limit", Japanese: "制限時間超過"}, "", "throughput"}},
	{"skipped", known{experiment.Text{English: "Not begun, as too late", Japanese: "時間切れで未実行"}, "", "throughput"}},
	{"retries", known{experiment.Text{English: "Tried again", Japanese: "再試行"}, "", "throughput"}},
	{"reconnected", known{experiment.Text{English: "Sessions lost and begun anew", Japanese: "再接続したセッション"}, "", "throughput"}},
	{"refused", known{experiment.Text{English: "Connections refused", Japanese: "拒否された接続"}, "", "throughput"}},
	{"orders", known{experiment.Text{English: "Orders", Japanese: "注文数"}, "", "throughput"}},
	{"client_cpu_per_1000_nopm", known{experiment.Text{English: "Generator's CPU for 1,000 NOPM", Japanese: "1,000 NOPM あたりの負荷生成側 CPU 時間"}, "s/min", "throughput"}},
	{"client_cpu", known{experiment.Text{English: "Generator's CPU", Japanese: "負荷生成側 CPU"}, "cores", "throughput"}},
	{"pgpool_cpu", known{experiment.Text{English: "pgpool's CPU", Japanese: "pgpool の CPU"}, "cores", "throughput"}},
	{"standby_reads_percent", known{experiment.Text{English: "Reads that pgpool gave to standbys", Japanese: "pgpool がスタンバイに送った読み取り"}, "%", "throughput"}},
	{"stale_percent", known{experiment.Text{English: "Stale reads", Japanese: "古い値を返した読み取り"}, "%", "throughput"}},
	{"stale_reads", known{experiment.Text{English: "Stale reads, counted", Japanese: "古い値を返した読み取りの回数"}, "", "throughput"}},
	{"checked_reads", known{experiment.Text{English: "Reads checked", Japanese: "検査した読み取り"}, "", "throughput"}},
	{"stale_age_ms", known{experiment.Text{English: "Oldest stale read", Japanese: "最も古い読み取りの遅れ"}, "ms", "throughput"}},
	{"stale_writes", known{experiment.Text{English: "Writes that a read lacked at most", Japanese: "読み取りに欠けていた書き込みの最大数"}, "", "throughput"}},
	{"latency_mean_ms", known{experiment.Text{English: "Mean", Japanese: "平均"}, "ms", "latency"}},
	{"latency_p50_ms", known{experiment.Text{English: "p50"}, "ms", "latency"}},
	{"latency_p90_ms", known{experiment.Text{English: "p90"}, "ms", "latency"}},
	{"latency_p95_ms", known{experiment.Text{English: "p95"}, "ms", "latency"}},
	{"latency_p99_ms", known{experiment.Text{English: "p99"}, "ms", "latency"}},
	{"latency_p99.9_ms", known{experiment.Text{English: "p99.9"}, "ms", "latency"}},
	{"latency_max_ms", known{experiment.Text{English: "Greatest", Japanese: "最大"}, "ms", "latency"}},
	{"new_order_p50_ms", known{experiment.Text{English: "New-Order p50"}, "ms", "latency"}},
	{"new_order_p95_ms", known{experiment.Text{English: "New-Order p95"}, "ms", "latency"}},
	{"new_order_p99_ms", known{experiment.Text{English: "New-Order p99"}, "ms", "latency"}},
	{"payment_p50_ms", known{experiment.Text{English: "Payment p50"}, "ms", "latency"}},
	{"payment_p95_ms", known{experiment.Text{English: "Payment p95"}, "ms", "latency"}},
	{"payment_p99_ms", known{experiment.Text{English: "Payment p99"}, "ms", "latency"}},
	{"order_status_p50_ms", known{experiment.Text{English: "Order-Status p50"}, "ms", "latency"}},
	{"order_status_p95_ms", known{experiment.Text{English: "Order-Status p95"}, "ms", "latency"}},
	{"order_status_p99_ms", known{experiment.Text{English: "Order-Status p99"}, "ms", "latency"}},
	{"delivery_p50_ms", known{experiment.Text{English: "Delivery p50"}, "ms", "latency"}},
	{"delivery_p95_ms", known{experiment.Text{English: "Delivery p95"}, "ms", "latency"}},
	{"delivery_p99_ms", known{experiment.Text{English: "Delivery p99"}, "ms", "latency"}},
	{"stock_level_p50_ms", known{experiment.Text{English: "Stock-Level p50"}, "ms", "latency"}},
	{"stock_level_p95_ms", known{experiment.Text{English: "Stock-Level p95"}, "ms", "latency"}},
	{"stock_level_p99_ms", known{experiment.Text{English: "Stock-Level p99"}, "ms", "latency"}},
	{"load_s", known{experiment.Text{English: "Bulk load", Japanese: "一括ロード"}, "s", "faults"}},
	{"update_s", known{experiment.Text{English: "Bulk UPDATE", Japanese: "一括更新"}, "s", "faults"}},
	{"vacuum_s", known{experiment.Text{English: "VACUUM", Japanese: "VACUUM"}, "s", "faults"}},
	{"vacuum_s_cpu", known{experiment.Text{English: "CPU of VACUUM", Japanese: "VACUUM の CPU 時間"}, "s", "faults"}},
	{"behind_tps_s", known{experiment.Text{English: "Standbys late after the load", Japanese: "負荷後の追いつき"}, "s", "faults"}},
	{"behind_load_s", known{experiment.Text{English: "Standbys late after the bulk load", Japanese: "ロード後の追いつき"}, "s", "faults"}},
	{"behind_update_s", known{experiment.Text{English: "Standbys late after the UPDATE", Japanese: "更新後の追いつき"}, "s", "faults"}},
	{"behind_vacuum_s", known{experiment.Text{English: "Standbys late after VACUUM", Japanese: "VACUUM 後の追いつき"}, "s", "faults"}},
	{"outage_s", known{experiment.Text{English: "Outage", Japanese: "停止時間"}, "s", "faults"}},
	{"back_s", known{experiment.Text{English: "Throughput is back after", Japanese: "スループット回復まで"}, "s", "faults"}},
	{"tps_before", known{experiment.Text{English: "Before", Japanese: "障害前"}, "TPS", "faults"}},
	{"tps_after", known{experiment.Text{English: "Afterwards", Japanese: "障害後"}, "TPS", "faults"}},
	{"cached_primary", known{experiment.Text{English: "Cached on the primary", Japanese: "プライマリのキャッシュ率"}, "%", "faults"}},
	{"cached_standby", known{experiment.Text{English: "Cached on a standby", Japanese: "スタンバイのキャッシュ率"}, "%", "faults"}},
	{"rows_before", known{experiment.Text{English: "Rows before", Japanese: "クラッシュ前の行数"}, "", "faults"}},
	{"rows_after", known{experiment.Text{English: "Rows after", Japanese: "クラッシュ後の行数"}, "", "faults"}},
	{"down_s", known{experiment.Text{English: "Down", Japanese: "停止時間"}, "s", "faults"}},
	{"rto_s", known{experiment.Text{English: "RTO", Japanese: "RTO"}, "s", "faults"}},
	{"rto_worst_s", known{experiment.Text{English: "RTO of the last client", Japanese: "最も遅いクライアントの RTO"}, "s", "faults"}},
	{"rpo_s", known{experiment.Text{English: "RPO", Japanese: "RPO"}, "s", "faults"}},
	{"lost_rows", known{experiment.Text{English: "Lost rows", Japanese: "失われた行"}, "", "faults"}},
	{"acknowledged", known{experiment.Text{English: "Acknowledged rows", Japanese: "確認済みの行"}, "", "faults"}},
	{"errors", known{experiment.Text{English: "Errors of clients", Japanese: "クライアントのエラー"}, "", "faults"}},
	{"whole_s", known{experiment.Text{English: "Whole again after", Japanese: "全体の復旧まで"}, "s", "faults"}},
	{"load_tps_before", known{experiment.Text{English: "pgbench before", Japanese: "障害前の pgbench"}, "TPS", "faults"}},
	{"load_tps_after", known{experiment.Text{English: "pgbench afterwards", Japanese: "復旧後の pgbench"}, "TPS", "faults"}},
	{"load_cut", known{experiment.Text{English: "pgbench was cut", Japanese: "pgbench の切断回数"}, "", "faults"}},
	{"load_nopm_before", known{experiment.Text{English: "Orders before", Japanese: "障害前の注文"}, "NOPM", "faults"}},
	{"load_nopm_after", known{experiment.Text{English: "Orders afterwards", Japanese: "復旧後の注文"}, "NOPM", "faults"}},
	{"load_reconnected", known{experiment.Text{English: "Sessions begun anew", Japanese: "再接続したセッション"}, "", "faults"}},
	{"restore_s", known{experiment.Text{English: "Restore", Japanese: "復元時間"}, "s", "faults"}},
	{"server_cpu_percent", known{experiment.Text{English: "Server's CPU", Japanese: "サーバ CPU"}, "%", "server"}},
	{"machine_cpu_percent", known{experiment.Text{English: "Machine's CPU", Japanese: "マシン全体 CPU"}, "%", "server"}},
	{"client_machine_cpu_percent", known{experiment.Text{English: "CPU of the generator's machine", Japanese: "負荷生成側マシンの CPU"}, "%", "server"}},
	{"read_iops", known{experiment.Text{English: "Reads", Japanese: "読み込み"}, "IOPS", "server"}},
	{"write_iops", known{experiment.Text{English: "Writes", Japanese: "書き込み"}, "IOPS", "server"}},
	{"read_mb_s", known{experiment.Text{English: "Read", Japanese: "読み込み量"}, "MB/s", "server"}},
	{"write_mb_s", known{experiment.Text{English: "Written", Japanese: "書き込み量"}, "MB/s", "server"}},
	{"hit_percent", known{experiment.Text{English: "Buffer hits", Japanese: "バッファヒット率"}, "%", "server"}},
	{"wal_mb_s", known{experiment.Text{English: "WAL"}, "MB/s", "wal"}},
	{"wal_bytes_tx", known{experiment.Text{English: "WAL of a transaction", Japanese: "1 トランザクションの WAL"}, "bytes", "wal"}},
	{"wal_syncs_s", known{experiment.Text{English: "WAL flushes", Japanese: "WAL フラッシュ"}, "1/s", "wal"}},
	{"checkpoints", known{experiment.Text{English: "Checkpoints", Japanese: "チェックポイント"}, "", "wal"}},
	{"replay_lag_mb", known{experiment.Text{English: "Standby behind", Japanese: "スタンバイの遅れ"}, "MB", "wal"}},
	{"build_seconds", known{experiment.Text{English: "Build of the data", Japanese: "データ作成"}, "s", "other"}},
	{"aas", known{experiment.Text{English: "Active sessions", Japanese: "アクティブセッション"}, "", "waits"}},
	{"aas_cpu", known{experiment.Text{English: "CPU"}, "", "waits"}},
	{"aas_io", known{experiment.Text{English: "I/O"}, "", "waits"}},
	{"aas_wal", known{experiment.Text{English: "WAL"}, "", "waits"}},
	{"aas_lock", known{experiment.Text{English: "Lock", Japanese: "ロック"}, "", "waits"}},
	{"aas_lwlock", known{experiment.Text{English: "LWLock"}, "", "waits"}},
	{"aas_ipc", known{experiment.Text{English: "IPC"}, "", "waits"}},
	{"aas_client", known{experiment.Text{English: "Client", Japanese: "クライアント"}, "", "waits"}},
	{"aas_timeout", known{experiment.Text{English: "Timeout", Japanese: "タイムアウト"}, "", "waits"}},
	{"aas_other", known{experiment.Text{English: "Other", Japanese: "その他"}, "", "waits"}},
}

// lookUp returns what a figure is, and the prefix of its step. A figure that nobody knows is called by
// its name.
func lookUp(name string) (k known, prefix string) {
	best := -1
	for n, each := range catalogue {
		before, ok := strings.CutSuffix(name, each.name)
		if ok && (before == "" || strings.HasSuffix(before, "_")) && (best < 0 || len(each.name) > len(catalogue[best].name)) {
			best, prefix = n, before
		}
	}
	if best < 0 {
		return known{experiment.Text{English: name}, "", "other"}, ""
	}
	return catalogue[best].known, prefix
}

// place is where a figure is among the others of its table.
func place(name string) int {
	_, prefix := lookUp(name)
	for n, each := range catalogue {
		if each.name == strings.TrimPrefix(name, prefix) {
			return n
		}
	}
	return len(catalogue)
}

// title is the name of a figure for people, without its unit.
func title(name, language string) string {
	k, prefix := lookUp(name)
	if prefix = strings.TrimSuffix(prefix, "_"); prefix != "" {
		return prefix + ": " + k.In(language)
	}
	return k.In(language)
}

// labelled is the name of a figure with its unit.
func labelled(name, language string) string {
	text := title(name, language)
	if k, _ := lookUp(name); k.unit != "" {
		text += " (" + k.unit + ")"
	}
	return text
}

// unitOr is the short name of a figure in a sentence: TPS.
func unitOr(name, language string) string {
	if k, prefix := lookUp(name); k.group == "throughput" && k.unit != "" && k.unit != "cores" {
		return prefix + k.unit
	}
	return labelled(name, language)
}

// inOrder sorts the names of figures as tables have them.
func inOrder(names map[string]bool) []string {
	all := slices.Sorted(maps.Keys(names))
	slices.SortStableFunc(all, func(a, b string) int {
		_, pa := lookUp(a)
		_, pb := lookUp(b)
		if pa != pb {
			return strings.Compare(pa, pb)
		}
		return place(a) - place(b)
	})
	return all
}
