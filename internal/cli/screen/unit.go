package screen

import (
	"fmt"
	"strconv"
	"time"
)

// Bytes returns a number of bytes as people read it: "512 B", "1.5 GiB".
func Bytes(n int64) string {
	if n < 1024 && n > -1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n), ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		value /= 1024
		if value < 1024 && value > -1024 {
			break
		}
	}
	if value >= 100 {
		return fmt.Sprintf("%.0f %s", value, unit)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// Span returns a duration as people read it: "0.31 s", "12 s", "3m20s", "2d4h".
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d < time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return d.Truncate(time.Second).String()
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
