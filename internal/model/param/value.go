package param

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"howdah/internal/model/extension"
)

// ErrValue says that PostgreSQL would refuse a value.
var ErrValue = errors.New("invalid value")

func refuse(p Parameter, value, format string, args ...any) error {
	return fmt.Errorf("%w %q for parameter %s: %s", ErrValue, value, p.Name, fmt.Sprintf(format, args...))
}

// maxValue is the greatest length of a value, as in the model of the API.
const maxValue = 65535

// Check refuses what PostgreSQL would refuse: by type, unit, range and choice. It computes a
// formula for each machine, and each result must be a valid value.
func (c Catalogue) Check(p Parameter, value string, machines []Machine) error {
	if len(value) > maxValue || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' }) {
		return refuse(p, "…", "it is too long or holds control characters")
	}
	if IsFormula(value) {
		return p.checkFormula(value, machines)
	}
	switch p.Type {
	case "bool":
		if _, ok := parseBool(value); !ok {
			return refuse(p, value, "use 0 or 1")
		}
		return nil
	case "integer", "real":
		n, err := p.Number(value)
		if err != nil {
			return err
		}
		return p.checkHook(value, n)
	case "enum":
		return p.checkChoice(value)
	}
	if len(p.Enum) > 0 {
		return p.checkChoice(value)
	}
	return c.checkNames(p, value)
}

// checkChoice ignores the case of PostgreSQL's own words, as PostgreSQL does, but not the case of
// names that others chose.
func (p Parameter) checkChoice(value string) error {
	if !slices.ContainsFunc(p.Enum, func(e string) bool { return e == value || p.Type == "enum" && strings.EqualFold(e, value) }) {
		return refuse(p, value, "use one of %s", strings.Join(p.Enum, ", "))
	}
	return nil
}

func (p Parameter) checkFormula(value string, machines []Machine) error {
	if p.Type != "integer" && p.Type != "real" {
		return refuse(p, value, "a formula can only stand for a number")
	}
	for _, m := range machines {
		n, err := Evaluate(value, m)
		if err != nil {
			return refuse(p, value, "%s", err)
		}
		if err := first(p.inRange(value, float64(n)), p.checkHook(value, float64(n))); err != nil {
			return fmt.Errorf("%w, of an instance with %d MiB of memory and %d GiB of storage", err, m.Memory>>20, m.Storage>>30)
		}
	}
	return nil
}

// checkHook refuses numbers that PostgreSQL refuses although they are within the range.
func (p Parameter) checkHook(value string, n float64) error {
	switch p.Name {
	case "vacuum_buffer_usage_limit":
		if n != 0 && n < 128 {
			return refuse(p, value, "it must be 0 or at least 128 kB")
		}
	case "io_max_concurrency":
		if n == 0 {
			return refuse(p, value, "it must be -1 or more than 0")
		}
	case "commit_timestamp_buffers", "multixact_member_buffers", "multixact_offset_buffers", "notify_buffers", "serializable_buffers", "subtransaction_buffers", "transaction_buffers":
		if math.Mod(n, 16) != 0 {
			return refuse(p, value, "it must be a multiple of 16")
		}
	}
	return nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Number returns a value as a number in the parameter's own unit. As in PostgreSQL, another unit
// may follow the number, and a value that is no multiple of the own unit is rounded. Number refuses
// a value out of range.
func (p Parameter) Number(value string) (float64, error) {
	text := strings.TrimSpace(value)
	end := numberEnd(text)
	unit := strings.TrimSpace(text[end:])
	n, err := parseNumber(text[:end])
	if err != nil {
		return 0, refuse(p, value, "it is not a number")
	}
	factor, ok := convert(unit, p.Unit)
	if !ok {
		return 0, refuse(p, value, "%s", unitHint(unit, p.Unit))
	}
	n *= factor
	if p.Type == "integer" {
		if p.Unit == "" && n != math.Trunc(n) {
			return 0, refuse(p, value, "it must be a whole number")
		}
		n = math.RoundToEven(n)
	}
	return n, p.inRange(value, n)
}

func unitHint(unit, own string) string {
	switch {
	case own == "":
		return "it has no unit"
	case isTime(own):
		return fmt.Sprintf("the unit %q is unknown: use us, ms, s, min, h or d; without one it is %s", unit, own)
	default:
		return fmt.Sprintf("the unit %q is unknown: use B, kB, MB, GB or TB; without one it is %s", unit, own)
	}
}

func (p Parameter) inRange(value string, n float64) error {
	least, errLeast := strconv.ParseFloat(p.Min, 64)
	most, errMost := strconv.ParseFloat(p.Max, 64)
	if errLeast == nil && n < least || errMost == nil && n > most || math.IsNaN(n) {
		unit := ""
		if p.Unit != "" {
			unit = " in units of " + p.Unit
		}
		return refuse(p, value, "it must be between %s and %s%s", p.Min, p.Max, unit)
	}
	return nil
}

func numberEnd(text string) int {
	for i := range len(text) {
		c := text[i]
		switch {
		case isDigit(c), c == '.', c == '+', c == '-', c == 'x', c == 'X':
		case c == 'e' || c == 'E':
			if i+1 >= len(text) || !isDigit(text[i+1]) && text[i+1] != '-' && text[i+1] != '+' {
				return i
			}
		case strings.HasPrefix(strings.ToLower(text), "0x") && isLetter(c) && strings.ContainsRune("abcdefABCDEF", rune(c)):
		default:
			return i
		}
	}
	return len(text)
}

// parseNumber reads whole numbers in base 8 and 16, too, as PostgreSQL does.
func parseNumber(text string) (float64, error) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil && !strings.ContainsAny(text, "_oObB") {
		return float64(n), nil
	}
	if strings.ContainsAny(text, "_xXpP") {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsInf(n, 0) || math.IsNaN(n) || math.Abs(n) < leastNormal && strings.ContainsAny(mantissa(text), "123456789")) {
		return 0, strconv.ErrRange
	}
	return n, err
}

// leastNormal is the least number that strtod reads in full precision. PostgreSQL reads with
// strtod.
const leastNormal = 0x1p-1022

func mantissa(text string) string {
	before, _, _ := strings.Cut(strings.ToLower(text), "e")
	return before
}

var bytesOf = map[string]float64{"B": 1, "kB": 1 << 10, "8kB": 8 << 10, "16MB": 16 << 20, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}

var secondsOf = map[string]float64{"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400}

func isTime(unit string) bool { _, ok := secondsOf[unit]; return ok }

// convert returns the factor from a unit to a parameter's own. Without a unit it is 1.
func convert(unit, own string) (float64, bool) {
	if unit == "" {
		return 1, true
	}
	units := bytesOf
	if isTime(own) {
		units = secondsOf
	}
	from, ok := units[unit]
	to, also := units[own]
	if !ok || !also || unit == "8kB" || unit == "16MB" {
		return 0, false
	}
	return from / to, true
}

// parseBool takes the words that both PostgreSQL and Patroni take, and no short forms of them.
func parseBool(value string) (on, ok bool) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "1", "on", "true", "yes":
		return true, true
	case "0", "off", "false", "no":
		return false, true
	}
	return false, false
}

// checkNames refuses lists that name libraries or extensions which are missing.
func (c Catalogue) checkNames(p Parameter, value string) error {
	var known []string
	switch p.Name {
	case "shared_preload_libraries":
		known = c.Libraries
	case "session_preload_libraries":
		sessions := extension.SessionLibraries()
		known = slices.DeleteFunc(slices.Clone(c.Libraries), func(name string) bool { return !slices.Contains(sessions, name) })
	case rdsExtensions:
		known = c.Extensions
	case allowedExtensions:
		known = append([]string{"*"}, c.Extensions...)
	default:
		return nil
	}
	for _, name := range Names(value) {
		if !slices.Contains(known, name) {
			return refuse(p, value, "%q is not among those of PostgreSQL %s here: %s", name, c.Version, strings.Join(known, ", "))
		}
	}
	return nil
}

// Names splits a list into its names.
func Names(value string) []string {
	var all []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" {
			all = append(all, name)
		}
	}
	return all
}
