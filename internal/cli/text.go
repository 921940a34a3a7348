package cli

import "strings"

// Yes returns a text if a condition holds, or else "".
func Yes(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// JoinTexts joins the texts that are not empty.
func JoinTexts(separator string, texts ...string) string {
	var some []string
	for _, t := range texts {
		if t != "" {
			some = append(some, t)
		}
	}
	return strings.Join(some, separator)
}

// OneLine returns an error in one line, for a person at a terminal.
func OneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
