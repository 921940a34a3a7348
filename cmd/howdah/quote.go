package main

import "strings"

// shellQuote returns a word that every POSIX shell reads back unchanged.
func shellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plainWord has the characters that mean nothing to a shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%"

// shellWord quotes a word only if it must be quoted.
func shellWord(word string) string {
	if word != "" && strings.Trim(word, plainWord) == "" {
		return word
	}
	return shellQuote(word)
}

// shellQuoteDouble quotes with double quotes, which people read more easily.
func shellQuoteDouble(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

// infoValue quotes a value of a libpq connection string if it must be quoted.
func infoValue(text string) string {
	if text != "" && !strings.ContainsAny(text, ` '\`) {
		return text
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
