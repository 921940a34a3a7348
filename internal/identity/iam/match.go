package iam

import "strings"

// glob reports whether a whole text matches a pattern. In the pattern * stands for any characters,
// and ? for one.
func glob(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	// After a mismatch the match goes on behind the last star, which then takes one character more.
	star, taken := -1, 0
	i, j := 0, 0
	for j < len(t) {
		switch {
		case i < len(p) && p[i] == '*':
			star, taken = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == t[j]):
			i, j = i+1, j+1
		case star >= 0:
			taken++
			i, j = star+1, taken
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// arnParts is how many parts an ARN has: arn, partition, service, region, account and resource.
const arnParts = 6

// matchARN compares part by part. A star stays within its part, unless it ends the pattern.
func matchARN(pattern, arn string) bool {
	if pattern == "*" {
		return true
	}
	parts := strings.SplitN(pattern, ":", arnParts)
	texts := strings.SplitN(arn, ":", len(parts))
	if len(texts) != len(parts) {
		return false
	}
	for i, part := range parts {
		if !glob(part, texts[i]) {
			return false
		}
	}
	return len(parts) == arnParts || strings.HasSuffix(pattern, "*")
}

// lowerName returns an ARN, or a pattern of ARNs, with the resource's name in lower case.
func lowerName(arn string) string {
	parts := strings.SplitN(arn, ":", arnParts)
	if len(parts) < arnParts {
		return arn
	}
	parts[arnParts-1] = strings.ToLower(parts[arnParts-1])
	return strings.Join(parts, ":")
}
