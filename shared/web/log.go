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

// stdoutWriter writes to the current os.Stdout: tests replace it.
type stdoutWriter struct{}

func (stdoutWriter) Write(b []byte) (int, error) { return os.Stdout.Write(b) }

// newLogHandler returns a handler that writes records in the format of Cloud Logging. A record
// whose context belongs to a request carries the request id and the trace.
func newLogHandler(w io.Writer, config Config) slog.Handler {
	prefix := ""
	if config.ProjectID != "" {
		prefix = "projects/" + config.ProjectID + "/traces/"
	}
	return logHandler{slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: renameCloudAttrs}), prefix}
}

// LocalLogHandler returns the handler for the development server's own records, which are not part
// of a request. The format is the same as in a deployed function. The handler is safe for
// concurrent use, writes each record with a single Write to w under a mutex, and returns the error
// of w. LocalLogHandler itself writes nothing and never fails.
func LocalLogHandler(w io.Writer) slog.Handler { return newLogHandler(w, Config{}) }

type logHandler struct {
	slog.Handler
	tracePrefix string // "projects/<id>/traces/", or empty
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

// renameCloudAttrs gives top-level attributes the names that Cloud Logging reads.
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

// severity returns the name of a level in Cloud Logging.
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

// logRequest writes the single log record of a request. The record names the route by its pattern
// and holds no client address, browser, query, cookie or id of a guest.
func (f *Function) logRequest(s *state, c *Call, r *http.Request, err error) {
	fields, phases, alert := c.close()
	level, status := slog.LevelInfo, c.out.status
	// the last case failed in the middle of its response
	if alert || status >= 500 || err != nil && status < 400 {
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
	record.AddAttrs(fields...)
	if len(phases) > 0 {
		record.AddAttrs(slog.Attr{Key: "phases", Value: phaseGroup(phases)})
	}
	if err != nil {
		record.AddAttrs(slog.String("err", truncate(err.Error())))
		if p, ok := errors.AsType[*panicError](err); ok {
			record.AddAttrs(slog.String("stack", string(p.stack)))
		}
	}
	_ = s.log.Handle(r.Context(), record) // an error has no other place to go
}

// phaseGroup returns the phases as a group of milliseconds.
func phaseGroup(phases []phase) slog.Value {
	attrs := make([]slog.Attr, len(phases))
	for i, p := range phases {
		attrs[i] = slog.Float64(p.name, float64(tenths(p.duration))/10)
	}
	return slog.GroupValue(attrs...)
}

// knownMethod returns a standard method as it is and OTHER for any other: clients may send any
// text.
func knownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "OTHER"
}

// truncate cuts a text to 2 KiB, so that the record fits a log line.
func truncate(s string) string {
	const maxBytes = 2 << 10
	if len(s) > maxBytes {
		return s[:maxBytes]
	}
	return s
}
