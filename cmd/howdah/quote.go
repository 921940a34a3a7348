package main

import "strings"

// shellQuote makes a word that every POSIX shell reads back as it is.
func shellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plainWord are the characters that mean nothing to a shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%"

// shellWord quotes a word only where it must.
func shellWord(word string) string {
	if word != "" && strings.Trim(word, plainWord) == "" {
		return word
	}
	return shellQuote(word)
}

// shellQuoteDouble quotes as people do who want to read it.
func shellQuoteDouble(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

// infoValue quotes a value of a libpq connection string where it must.
func infoValue(text string) string {
	if text != "" && !strings.ContainsAny(text, ` '\`) {
		return text
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
