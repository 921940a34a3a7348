package member

import "encoding/json"

// Same reports whether two assignments mean the same. One may have been through JSON, which does
// not keep a nil list apart from an empty one in every field.
func (a Assignment) Same(b Assignment) bool { return text(a) == text(b) }

func text(a Assignment) string {
	text, err := json.Marshal(a)
	if err != nil {
		// An assignment has only strings, numbers and maps of strings, which always encode.
		panic("member: " + err.Error())
	}
	return string(text)
}
