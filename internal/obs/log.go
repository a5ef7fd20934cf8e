package obs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
)

// Format is how log lines are written.
type Format string

// The formats of log lines.
const (
	Text Format = "text" // key=value, for people
	JSON Format = "json" // one object a line, for collectors
)

// Config says what is logged and how. The zero value logs text from level info.
type Config struct {
	Level  slog.Level
	Format Format
}

// ParseConfig reads the two settings as people write them: a level such as
// "debug" or "warn", and a format. Empty means the default.
func ParseConfig(level, format string) (Config, error) {
	c := Config{Format: Format(format)}
	if level != "" {
		if err := c.Level.UnmarshalText([]byte(level)); err != nil {
			return Config{}, fmt.Errorf("log level %q: want debug, info, warn or error", level)
		}
	}
	return c, c.Validate()
}

// Validate reports a format that does not exist.
func (c Config) Validate() error {
	switch c.Format {
	case "", Text, JSON:
		return nil
	default:
		return fmt.Errorf("log format %q: want text or json", string(c.Format))
	}
}

// NewLogger returns a logger that writes to w, with the attributes that
// WithAttrs put into the context of each call. Any format but JSON is text. A
// warning or an error that is the same as one of the last 30 s is not written, but
// counted in the next one that is.
func NewLogger(w io.Writer, c Config) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.Level}
	if c.Format == JSON {
		return slog.New(contextHandler{holdRepeats(slog.NewJSONHandler(w, opts))})
	}
	return slog.New(contextHandler{holdRepeats(slog.NewTextHandler(w, opts))})
}

type attrsKey struct{}

// WithAttrs returns a context whose log lines carry attrs, such as the ids of
// the request or task that is being served. An attribute replaces an earlier one
// of the same key.
func WithAttrs(ctx context.Context, attrs ...slog.Attr) context.Context {
	all := slices.Clone(Attrs(ctx))
	for _, a := range attrs {
		same := func(b slog.Attr) bool { return b.Key == a.Key }
		all = append(slices.DeleteFunc(all, same), a)
	}
	return context.WithValue(ctx, attrsKey{}, all)
}

// Attrs returns what WithAttrs put into ctx. The caller must not change it.
func Attrs(ctx context.Context) []slog.Attr {
	attrs, _ := ctx.Value(attrsKey{}).([]slog.Attr)
	return attrs
}

// contextHandler adds the context's attributes to each record. In a logger with
// an open group they end up in that group, as slog gives no way around it.
type contextHandler struct{ slog.Handler }

func (h contextHandler) Handle(ctx context.Context, r slog.Record) error {
	if attrs := Attrs(ctx); len(attrs) > 0 {
		r = r.Clone()
		r.AddAttrs(attrs...)
	}
	return h.Handler.Handle(ctx, r)
}

func (h contextHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return contextHandler{h.Handler.WithAttrs(attrs)}
}

func (h contextHandler) WithGroup(name string) slog.Handler {
	return contextHandler{h.Handler.WithGroup(name)}
}
