package cli

import (
	"log/slog"
	"os"
)

// NewLog returns a logger that writes JSON lines, as logs of parts go to files.
func NewLog(part string) *slog.Logger {
	level := slog.LevelInfo
	if os.Getenv("HOWDAH_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("part", part)
}
