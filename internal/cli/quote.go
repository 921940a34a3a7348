package cli

import "strings"

// ShellQuote returns a word that every POSIX shell reads back unchanged.
func ShellQuote(word string) string {
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plainWord has the characters that mean nothing to a shell.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+:,./@%"

// ShellWord quotes a word only if it must be quoted.
func ShellWord(word string) string {
	if word != "" && strings.Trim(word, plainWord) == "" {
		return word
	}
	return ShellQuote(word)
}

// ShellQuoteDouble quotes with double quotes, which people read more easily.
func ShellQuoteDouble(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(text) + `"`
}

// InfoValue quotes a value of a libpq connection string if it must be quoted.
func InfoValue(text string) string {
	if text != "" && !strings.ContainsAny(text, ` '\`) {
		return text
	}
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}
