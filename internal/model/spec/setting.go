package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// SettingPrefix marks tags that are settings of Howdah for which RDS has no parameter. Any client
// can set a tag, also when it creates a resource.
const SettingPrefix = "howdah:"

// The settings.
const (
	// WaitForStandby ("true") makes writes wait while no standby can confirm them. RDS goes on
	// without a standby.
	WaitForStandby = SettingPrefix + "wait-for-standby"
	// Promotable ("false") keeps an instance of a cluster from ever becoming the writer.
	Promotable = SettingPrefix + "promotable"
	// WarmStandby ("true") has the standby of a Multi-AZ instance keep in its cache what the primary
	// has in its own. Aurora has the parameter apg_ccm_enabled for it, RDS has nothing.
	WarmStandby = SettingPrefix + "warm-standby"
	// WALCapSetting is how many GiB of WAL may wait to be archived, before what is oldest is given
	// up.
	WALCapSetting = SettingPrefix + "wal-cap"
)

// mostWALCap is the most that WALCapSetting may say, in GiB.
const mostWALCap = 1 << 14

var settings = map[string][]string{
	WaitForStandby: {"true", "false"},
	Promotable:     {"true", "false"},
	WarmStandby:    {"true", "false"},
}

// Setting returns the value of a setting in a list of tags, or "".
func Setting(tags []Tag, key string) string {
	for _, t := range tags {
		if t.Key == key {
			return t.Value
		}
	}
	return ""
}

func checkSetting(t Tag) error {
	if !strings.HasPrefix(t.Key, SettingPrefix) {
		return nil
	}
	if t.Key == WALCapSetting {
		if _, ok := parseWALCap(t.Value); !ok {
			return invalidValue("Invalid value %q of the setting %s: use a number of GiB from 1 to %d.", t.Value, t.Key, mostWALCap)
		}
		return nil
	}
	allowed, known := settings[t.Key]
	if !known {
		return invalidValue("Unknown setting %s. Known: %s, %s, %s, %s.", t.Key, WaitForStandby, Promotable, WarmStandby, WALCapSetting)
	}
	if !slices.Contains(allowed, t.Value) {
		return invalidValue("Invalid value %q of the setting %s: use %s.", t.Value, t.Key, strings.Join(allowed, " or "))
	}
	return nil
}

func parseWALCap(text string) (gib int64, ok bool) {
	gib, err := strconv.ParseInt(text, 10, 64)
	return gib, err == nil && gib >= 1 && gib <= mostWALCap
}

// MergeTags adds tags to a list. An added tag replaces one with the same key.
func MergeTags(tags, added []Tag) []Tag {
	merged := slices.Clone(tags)
	for _, t := range added {
		i := slices.IndexFunc(merged, func(m Tag) bool { return m.Key == t.Key })
		if i >= 0 {
			merged[i] = t
			continue
		}
		merged = append(merged, t)
	}
	return merged
}

// RemoveTags removes the tags with the given keys. The others keep their order.
func RemoveTags(tags []Tag, keys []string) []Tag {
	return slices.DeleteFunc(slices.Clone(tags), func(t Tag) bool { return slices.Contains(keys, t.Key) })
}

// Invalid is the error for a request that breaks a rule of the API.
type Invalid struct {
	Code    string // the API's error code
	Message string
}

func (e *Invalid) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

func invalidValue(format string, args ...any) error {
	return &Invalid{"InvalidParameterValue", fmt.Sprintf(format, args...)}
}

func invalidCombination(format string, args ...any) error {
	return &Invalid{"InvalidParameterCombination", fmt.Sprintf(format, args...)}
}
