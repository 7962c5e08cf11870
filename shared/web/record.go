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
	"time"
)

// stdout finds os.Stdout when it writes, not when it is made.
type stdout struct{}

func (stdout) Write(b []byte) (int, error) { return os.Stdout.Write(b) }

// newLog returns a handler that writes records as Cloud Logging reads them, each tied to the request its context belongs to.
func newLog(w io.Writer, config Config) slog.Handler {
	prefix := ""
	if config.ProjectID != "" {
		prefix = "projects/" + config.ProjectID + "/traces/"
	}
	return logHandler{slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: cloudNames}), prefix}
}

type logHandler struct {
	slog.Handler
	prefix string // of the trace id
}

func (l logHandler) Handle(ctx context.Context, record slog.Record) error {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		record.AddAttrs(
			slog.String("logging.googleapis.com/trace", l.prefix+c.TraceID),
			slog.String("logging.googleapis.com/spanId", c.spanID),
			slog.Bool("logging.googleapis.com/trace_sampled", c.sampled),
			slog.String("requestId", c.ID),
		)
	}
	return l.Handler.Handle(ctx, record)
}

func (l logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{l.Handler.WithAttrs(attrs), l.prefix}
}

func (l logHandler) WithGroup(name string) slog.Handler {
	return logHandler{l.Handler.WithGroup(name), l.prefix}
}

func cloudNames(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.MessageKey:
		a.Key = "message"
	case slog.LevelKey:
		a.Key = "severity"
		if level, ok := a.Value.Any().(slog.Level); ok && level == slog.LevelWarn {
			a.Value = slog.StringValue("WARNING")
		}
	}
	return a
}

// record writes the one log record of a request: what was asked for by pattern, never by value, and how it went. It holds no address,
// browser, query, cookie or id of a guest.
func (f *Function) record(s *state, c *Call, r *http.Request, err error) {
	notes, phases := c.close()
	level, status := slog.LevelInfo, c.out.status
	if status >= 500 || err != nil && status < 400 { // the latter failed half-way through its answer
		level = slog.LevelError
	}
	var room [12]slog.Attr
	attrs := append(room[:0],
		slog.Any("httpRequest", exchange{
			method: knownMethod(r.Method), path: f.route.path, status: status, size: c.out.size, latency: s.now().Sub(c.Started),
		}),
		slog.String("function", f.Name),
	)
	attrs = append(attrs, notes...)
	if len(phases) > 0 {
		attrs = append(attrs, slog.Any("phases", durations(phases)))
	}
	if err != nil {
		attrs = append(attrs, slog.String("err", shorten(err.Error())))
		if p, ok := errors.AsType[*panicError](err); ok {
			attrs = append(attrs, slog.String("stack", string(p.stack)))
		}
	}
	record := slog.NewRecord(s.now(), level, f.Pattern, 0)
	record.AddAttrs(attrs...)
	_ = s.log.Handle(r.Context(), record) // a log that cannot be written has nobody to be told about it
}

// exchange is the httpRequest of a record. It writes itself, as the fields are known and the record is on every request's way.
type exchange struct {
	method, path string
	status       int
	size         int64
	latency      time.Duration
}

func (e exchange) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 192)
	b = append(b, `{"requestMethod":"`...)
	b = append(b, e.method...)
	b = append(b, `","requestUrl":`...)
	b = strconv.AppendQuote(b, e.path)
	b = append(b, `,"status":`...)
	b = strconv.AppendInt(b, int64(e.status), 10)
	b = append(b, `,"responseSize":"`...)
	b = strconv.AppendInt(b, e.size, 10)
	b = append(b, `","latency":"`...)
	b = strconv.AppendFloat(b, e.latency.Seconds(), 'f', 3, 64)
	return append(b, `s"}`...), nil
}

// durations are phases as an object of milliseconds.
type durations []phase

func (d durations) MarshalJSON() ([]byte, error) {
	b := make([]byte, 0, 128)
	for i, p := range d {
		b = append(b, "{,"[min(i, 1)])
		b = strconv.AppendQuote(b, p.name)
		b = append(b, ':')
		b = appendMilliseconds(b, p.took)
	}
	return append(b, '}'), nil
}

// knownMethod keeps a client's invention out of the log.
func knownMethod(method string) string {
	if slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method) {
		return method
	}
	return "OTHER"
}

// shorten keeps one record within what a log line may be.
func shorten(s string) string {
	const most = 2 << 10
	if len(s) > most {
		return s[:most]
	}
	return s
}
