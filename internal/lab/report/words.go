package report

// words are the report's own, by language. English is the language of last resort.
var words = map[string]map[string]string{
	"en": {
		"lang": "en", "quick": "This was a quick run: short, with little data. It shows how the experiment goes, and carries no figures.",
		"question": "Question", "answer": "Findings", "none": "Nothing is compared.", "figures": "Figures", "plots": "Plots", "how": "Procedure", "target": "Target",
		"problems": "What failed", "no_problems": "Nothing failed.", "raw": "Raw data", "setting": "Setting", "runs": "runs", "median": "median",
		"spread": "least to greatest", "unsteady": "its runs vary by more than 5 %", "ratio": "ratio", "parameter": "Parameter", "value": "Value",
		"carried":  "%s with %s is %s times that with %s (%s to %s in the pairs; P %s).",
		"open":     "%s: between %s and %s no difference can be told: %s.",
		"commands": "Commands", "experiment": "The experiment", "closed": "Latencies are service times of a closed loop: a client that waits begins nothing.",
		"measured": "Measured from %s to %s by howdah %s.", "unfinished": "This run is not finished.", "whiskers": "Points are medians; whiskers are the least and the greatest run.",
		"first": "Each second of the first run of each setting.", "pairs": "Bars are the medians of the ratios of runs that followed each other.",
	},
	"ja": {
		"lang": "ja", "quick": "これは短縮実行です。短時間・少量のデータで手順を示すもので、数値から結論は出せません。",
		"question": "検証の問い", "answer": "結果", "none": "比較はありません。", "figures": "測定値", "plots": "グラフ", "how": "手順", "target": "検証環境",
		"problems": "失敗したもの", "no_problems": "失敗はありません。", "raw": "生データ", "setting": "設定", "runs": "回数", "median": "中央値",
		"spread": "最小～最大", "unsteady": "実行ごとのばらつきが 5 % を超えています", "ratio": "比", "parameter": "パラメータ", "value": "値",
		"carried":  "%[1]s:%[2]s は %[4]s の %[3]s 倍（各組の比 %[5]s～%[6]s、P = %[7]s）。",
		"open":     "%s:%s と %s の差はあるとは言えません（%s）。",
		"commands": "実行したコマンド", "experiment": "実験定義", "closed": "レイテンシは閉ループのサービス時間です。待っているクライアントは次の処理を始めません。",
		"measured": "測定期間 %s ～ %s、howdah %s。", "unfinished": "この実行は完了していません。", "whiskers": "点は中央値、ひげは最小・最大の実行です。",
		"first": "各設定の 1 回目の実行の毎秒の値。", "pairs": "棒は連続した実行どうしの比の中央値です。",
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
