package etcd

import (
	"context"
	"log/slog"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// zapTo sends etcd's warnings and errors to our log. Its Info messages are a running commentary
// that would drown everything else.
func zapTo(log *slog.Logger) func(*embed.Config) error {
	return embed.NewZapLoggerBuilder(zap.New(&slogCore{log: log}))
}

type slogCore struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func (c *slogCore) Enabled(level zapcore.Level) bool { return level >= zapcore.WarnLevel }

func (c *slogCore) With(fields []zapcore.Field) zapcore.Core {
	return &slogCore{log: c.log, fields: append(append([]zapcore.Field(nil), c.fields...), fields...)}
}

func (c *slogCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(entry.Level) {
		return checked.AddCore(entry, c)
	}
	return checked
}

func (c *slogCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	encoder := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields, fields...) {
		f.AddTo(encoder)
	}
	args := make([]any, 0, 2*len(encoder.Fields))
	for key, value := range encoder.Fields {
		args = append(args, key, value)
	}
	level := slog.LevelWarn
	if entry.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, entry.Message, args...) //nolint:sloglint // the message is etcd's
	return nil
}

func (c *slogCore) Sync() error { return nil }
