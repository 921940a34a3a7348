package run

import "strings"

// quoted is a command as one types it.
func quoted(command []string) string {
	var all []string
	for _, word := range command {
		if word == "" || strings.ContainsAny(word, " '\"$&;|<>()*?#~`\\\n") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		all = append(all, word)
	}
	return strings.Join(all, " ")
}
