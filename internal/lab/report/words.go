package report

// words are the report's own, by language. English is the language of last resort.
var words = map[string]map[string]string{
	"en": {
		"lang": "en", "quick": "This was a quick run: short, with little data. It shows how the experiment goes; its figures decide nothing.",
		"question": "Question", "answer": "Findings", "none": "Nothing is compared.", "figures": "Figures", "plots": "Plots", "how": "Procedure", "target": "Environment",
		"problems": "What failed", "no_problems": "Nothing failed.", "raw": "Raw data", "setting": "Setting", "runs": "Runs", "run": "Run", "run_n": "run %d", "unsteady": "its runs vary by more than 5 %",
		"spread": "Figures are medians of all runs that count, with the least and the greatest below. ± marks runs that vary by more than 5 %.",
		"value":  "Value", "parameter": "Parameter", "source": "Source", "settings": "Settings of the server that are not the default",
		"carried":  "%s with %s is %s times that with %s (%s to %s in the pairs of runs; P = %s).",
		"open":     "%s: between %s and %s no difference can be told: %s.",
		"not_open": "not carried by the runs", "few": "there are %d runs of each, and %d are needed", "overlap": "the runs overlap: %s to %s against %s to %s",
		"commands": "Commands", "experiment": "The experiment's file", "closed": "Latencies are service times of a closed loop, unless a rate is set: a client that waits begins nothing.",
		"measured": "Measured from %s to %s by howdah %s.", "measuring": "Measured from %s on by howdah %s.", "unfinished": "This run is not finished: some settings or runs are missing.",
		"limited": "What limited it", "limit": "Limit", "evidence": "Evidence", "agree": "%d of %d runs", "also": "Other runs say:",
		"disturbed": "%d of %d runs were disturbed: %s",
		"unlimited": "none", "limit_note": "A verdict comes from what was observed while the load ran: sessions and their waits, CPU, disks and WAL. It is what most runs of a setting say.",
		"knee":    "The medians grow by less than 10 %% a doubling after %d clients (%s TPS).",
		"no_knee": "The medians still grow by 10 %% or more a doubling at %d clients: the sweep ends before the knee.",
		"order":   "Each setting is measured %d times, in rounds: a round has each setting once, and every other round goes backwards, so that a drift of the machine does not favour one setting.",
		"once":    "Once, before all: %s", "each": "For each run: %s", "points": "Order of the runs", "began": "Began (UTC)", "took": "Seconds", "figure": "Result", "struck": "Does not count", "marks": "Faults",
		"step_init": "make pgbench's tables anew", "step_pgbench": "run pgbench, after its warm-up, which does not count", "step_sql": "run a statement", "step_catch_up": "wait until all standbys have replayed what is written",
		"step_tpcc": "run the TPC-C workload", "step_restore": "restore the snapshot", "step_fault": "break something, and heal it", "step_failover": "fail over",
		"group_throughput": "Throughput", "group_latency": "Latency", "group_server": "CPU, disks and memory", "group_wal": "WAL, checkpoints and standbys", "group_waits": "Active sessions by what they waited for", "group_other": "Other figures",
		"title_sweep": "%s by load", "title_ratio": "%s compared", "title_seconds": "%s each second", "title_latency": "Latency percentiles", "title_transactions": "Response times of the transactions (p95)", "note_transactions": "Medians of the runs.", "title_waits": "Active sessions by class of wait",
		"note_sweep": "Points are medians; whiskers are the least and the greatest run.", "note_seconds": "The first run of each setting. Dashed lines are faults.",
		"note_ratio": "Medians of the ratios of runs that followed each other; whiskers are the least and the greatest. The dashed line is equality.", "note_latency": "Medians of the runs; whiskers are the least and the greatest.",
		"note_waits": "Sessions at work, on average: what is not CPU waits. Medians of the runs.",
		"over":       "%s, over that of %s", "sessions": "Average active sessions", "seconds": "Seconds since the load began", "latency": "Latency (ms)",
		"note_beside": "Medians of the second over those of the first; whiskers are the least over the greatest, and the greatest over the least. The dashed line is equality.",
		"aside":       "If that is left aside: ",
		"where":       "%s", "unobserved": "not observed: %s", "on": "on", "off": "off", "rotational": "rotational", "free": "%s of %s free", "cpus": "%d CPUs, %s", "memory": "%s memory", "virtual": "on %s",
		"env_target": "Target", "env_version": "Version", "env_size": "Database", "env_checksums": "Checksums", "env_extensions": "Extensions", "env_standbys": "Standbys", "env_server": "Server's machine",
		"env_limits": "Limits of its class", "env_storage": "Storage", "env_client": "Load generator's machine", "env_sysctl": "Kernel", "env_missing": "Not seen",
		"compare": "Side by side", "first": "First", "second": "Second", "difference": "Second over first", "differs": "What differs", "same": "Nothing of the environment differs.",
		"cautions": "These are two results that were not measured in turns: a machine that changed meanwhile is not told from what was varied.",
	},
	"ja": {
		"lang": "ja", "quick": "これは短縮実行です。短時間・少量のデータで手順を示すもので、この数値から判断はできません。",
		"question": "検証の問い", "answer": "結果", "none": "比較はありません。", "figures": "測定値", "plots": "グラフ", "how": "手順", "target": "検証環境",
		"problems": "失敗したもの", "no_problems": "失敗はありません。", "raw": "生データ", "setting": "設定", "runs": "回数", "run": "回", "run_n": "%d 回目", "unsteady": "実行ごとのばらつきが 5 % を超えています",
		"spread": "数値は有効な全実行の中央値、その下は最小～最大です。± は実行ごとのばらつきが 5 % を超えるものです。",
		"value":  "値", "parameter": "パラメータ", "source": "設定元", "settings": "既定値と異なるサーバパラメータ",
		"carried":  "%[1]s：%[2]s は %[4]s の %[3]s 倍です（各組の比 %[5]s～%[6]s、P = %[7]s）。",
		"open":     "%s：%s と %s の間に差があるとは言えません（%s）。",
		"not_open": "実行結果からは言えません", "few": "実行は各 %d 回で、%d 回必要です", "overlap": "実行結果が重なっています：%s～%s と %s～%s",
		"commands": "実行したコマンド", "experiment": "実験定義ファイル", "closed": "レイテンシは、レート指定のない限り閉ループのサービス時間です。待っているクライアントは次の処理を始めません。",
		"measured": "測定期間 %s ～ %s、howdah %s。", "measuring": "測定開始 %s、howdah %s。", "unfinished": "この実行は完了していません。測定されていない設定や回があります。",
		"limited": "ボトルネック", "limit": "上限", "evidence": "根拠", "agree": "%[2]d 回中 %[1]d 回", "also": "ほかの回の判定：",
		"disturbed": "%[2]d 回中 %[1]d 回は外乱がありました：%[3]s",
		"unlimited": "なし", "limit_note": "判定は、負荷をかけている間に観測したもの（セッションとその待機、CPU、ディスク、WAL）によります。各設定で最も多い判定を示します。",
		"knee":    "%d クライアント（%s TPS）を超えると、倍増あたりの中央値の伸びは 10 %% 未満です。",
		"no_knee": "%d クライアントでも倍増あたり 10 %% 以上伸びています。飽和点はこの範囲の外です。",
		"order":   "各設定を %d 回、巡回して測定します。1 巡ですべての設定を 1 回ずつ測定し、1 巡ごとに順序を逆にして、マシンの経時変化が特定の設定に有利にならないようにします。",
		"once":    "最初に一度：%s", "each": "実行ごとに：%s", "points": "実行の順序", "began": "開始 (UTC)", "took": "秒", "figure": "結果", "struck": "無効の理由", "marks": "障害",
		"step_init": "pgbench のテーブルを作り直す", "step_pgbench": "pgbench を実行する（ウォームアップは測定に含めない）", "step_sql": "SQL 文を実行する", "step_catch_up": "全スタンバイが書き込み済みの WAL を適用するまで待つ",
		"step_tpcc": "TPC-C ワークロードを実行する", "step_restore": "スナップショットから復元する", "step_fault": "障害を起こし、復旧させる", "step_failover": "フェイルオーバーする",
		"group_throughput": "スループット", "group_latency": "レイテンシ", "group_server": "CPU・ディスク・メモリ", "group_wal": "WAL・チェックポイント・スタンバイ", "group_waits": "待機別アクティブセッション数", "group_other": "その他の値",
		"title_sweep": "負荷と%s", "title_ratio": "%sの比較", "title_seconds": "毎秒の%s", "title_latency": "レイテンシのパーセンタイル", "title_transactions": "トランザクション別応答時間 (p95)", "note_transactions": "実行の中央値です。", "title_waits": "待機クラス別アクティブセッション",
		"note_sweep": "点は中央値、ひげは最小・最大の実行です。", "note_seconds": "各設定の 1 回目の実行です。破線は障害です。",
		"note_ratio": "連続した実行どうしの比の中央値です。ひげは最小・最大、破線は同等を示します。", "note_latency": "実行の中央値です。ひげは最小・最大です。",
		"note_waits": "処理中のセッション数の平均です。CPU 以外は待機です。実行の中央値です。",
		"over":       "%[2]s に対する %[1]s の比", "sessions": "平均アクティブセッション数", "seconds": "負荷開始からの秒数", "latency": "レイテンシ (ms)",
		"note_beside": "中央値どうしの比です。ひげは最小÷最大から最大÷最小まで、破線は同等を示します。",
		"aside":       "外乱を除けば：",
		"where":       "%s", "unobserved": "観測できませんでした：%s", "on": "有効", "off": "無効", "rotational": "回転式", "free": "空き %s / %s", "cpus": "%d CPU、%s", "memory": "メモリ %s", "virtual": "%s 上",
		"env_target": "対象", "env_version": "バージョン", "env_size": "データベース", "env_checksums": "チェックサム", "env_extensions": "拡張", "env_standbys": "スタンバイ", "env_server": "サーバのマシン",
		"env_limits": "クラスの制限", "env_storage": "ストレージ", "env_client": "負荷生成側のマシン", "env_sysctl": "カーネル", "env_missing": "観測できないもの",
		"compare": "比較", "first": "一方", "second": "他方", "difference": "他方 ÷ 一方", "differs": "相違点", "same": "環境に違いはありません。",
		"cautions": "この 2 つの結果は交互に測定されたものではありません。その間のマシンの変化と、変えた条件の効果は区別できません。",
	},
}

// Languages are those that reports have.
var Languages = []string{"en", "ja"}

func word(language, name string) string {
	if w := words[language][name]; w != "" {
		return w
	}
	return words["en"][name]
}
