package main

import (
	"log/slog"
	"os"
	"strings"
)

// newLog returns a logger that writes JSON lines, as logs of parts go to files.
func newLog(part string) *slog.Logger {
	level := slog.LevelInfo
	if os.Getenv("HOWDAH_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("part", part)
}

// oneLine returns an error in one line, for a person at a terminal.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
