package main

import (
	"log/slog"
	"os"
	"strings"
)

// newLog writes JSON lines: logs of parts go to files.
func newLog(part string) *slog.Logger {
	level := slog.LevelInfo
	if os.Getenv("HOWDAH_DEBUG") != "" {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("part", part)
}

// oneLine is an error as a person at a terminal reads it.
func oneLine(err error) string {
	return strings.Join(strings.Fields(err.Error()), " ")
}
