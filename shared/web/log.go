package web

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
)

// stdoutWriter finds os.Stdout when it writes, not when it is made.
type stdoutWriter struct{}

func (stdoutWriter) Write(b []byte) (int, error) { return os.Stdout.Write(b) }

// newLogHandler returns a handler that writes records as Cloud Logging reads them, each tied to the request its context
// belongs to.
func newLogHandler(w io.Writer, config Config) slog.Handler {
	prefix := ""
	if config.ProjectID != "" {
		prefix = "projects/" + config.ProjectID + "/traces/"
	}
	return logHandler{slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: renameCloudAttrs}), prefix}
}

// LocalLogHandler returns the handler for what the local system, which serves all functions in one process, logs beside their requests:
// with the names that it has where each is a process of its own.
func LocalLogHandler(w io.Writer) slog.Handler { return newLogHandler(w, Config{}) }

type logHandler struct {
	slog.Handler
	tracePrefix string // of the trace id
}

func (l logHandler) Handle(ctx context.Context, record slog.Record) error {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		record.AddAttrs(
			slog.String("logging.googleapis.com/trace", l.tracePrefix+c.TraceID),
			slog.String("logging.googleapis.com/spanId", c.spanID),
			slog.Bool("logging.googleapis.com/trace_sampled", c.sampled),
			slog.String("requestId", c.ID),
		)
	}
	return l.Handler.Handle(ctx, record)
}

func (l logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{l.Handler.WithAttrs(attrs), l.tracePrefix}
}

func (l logHandler) WithGroup(name string) slog.Handler {
	return logHandler{l.Handler.WithGroup(name), l.tracePrefix}
}

func renameCloudAttrs(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "message"
	case slog.LevelKey:
		a.Key = "severity"
		if level, ok := a.Value.Any().(slog.Level); ok {
			a.Value = slog.StringValue(severity(level))
		}
	}
	return a
}

func severity(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "ERROR"
	case level >= slog.LevelWarn:
		return "WARNING"
	case level >= slog.LevelInfo:
		return "INFO"
	}
	return "DEBUG"
}

// logRequest writes the one log record of a request: what was asked for by pattern, never by value, and how it went. It
// holds no address, browser, query, cookie or id of a guest.
func (f *Function) logRequest(s *state, c *Call, r *http.Request, err error) {
	notes, phases, alarm := c.close()
	level, status := slog.LevelInfo, c.out.status
	if alarm || status >= 500 || err != nil && status < 400 { // the last failed half-way through its answer
		level = slog.LevelError
	}
	latency := strconv.AppendFloat(make([]byte, 0, 16), s.now().Sub(c.Started).Seconds(), 'f', 3, 64)
	record := slog.NewRecord(s.now(), level, f.Pattern, 0)
	record.AddAttrs(
		slog.GroupAttrs("httpRequest",
			slog.String("requestMethod", knownMethod(r.Method)),
			slog.String("requestUrl", f.route.path),
			slog.Int("status", status),
			slog.Int64("responseSize", c.out.size),
			slog.String("latency", string(append(latency, 's'))),
		),
		slog.String("function", f.Name),
	)
	record.AddAttrs(notes...)
	if len(phases) > 0 {
		record.AddAttrs(slog.Attr{Key: "phases", Value: phaseGroup(phases)})
	}
	if err != nil {
		record.AddAttrs(slog.String("err", truncate(err.Error())))
		if p, ok := errors.AsType[*panicError](err); ok {
			record.AddAttrs(slog.String("stack", string(p.stack)))
		}
	}
	_ = s.log.Handle(r.Context(), record) // a log that cannot be written has nobody to be told about it
}

// phaseGroup are phases as a group.
func phaseGroup(phases []phase) slog.Value {
	attrs := make([]slog.Attr, len(phases))
	for i, p := range phases {
		attrs[i] = slog.Float64(p.name, float64(tenths(p.duration))/10)
	}
	return slog.GroupValue(attrs...)
}

// knownMethod keeps a client's invention out of the log.
func knownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "OTHER"
}

// truncate keeps one record within what a log line may be.
func truncate(s string) string {
	const most = 2 << 10
	if len(s) > most {
		return s[:most]
	}
	return s
}
