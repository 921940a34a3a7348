package member

import "encoding/json"

// Same reports whether two assignments say the same. One may have gone through JSON, where an
// empty list and none are the same.
func (a Assignment) Same(b Assignment) bool { return text(a) == text(b) }

func text(a Assignment) string {
	text, err := json.Marshal(a)
	if err != nil {
		// Only strings, numbers and maps of strings are in it.
		panic("member: " + err.Error())
	}
	return string(text)
}
