package problem

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// Occurrence identifies the request of a problem.
type Occurrence struct {
	Instance  string // path of the request, escaped, without the query
	RequestID string
	TraceID   string
}

// wireBody is the JSON of a problem: flat, in this order, with every member always present.
type wireBody struct {
	Type           string         `json:"type"`
	Title          string         `json:"title"`
	Status         int            `json:"status"`
	Detail         string         `json:"detail"`
	Instance       string         `json:"instance"`
	Code           string         `json:"code"`
	Errors         []FieldError   `json:"errors"`
	TraceID        string         `json:"traceId"`
	RequestID      string         `json:"requestId"`
	Retriable      bool           `json:"retriable"`
	RetryAfter     *int64         `json:"retryAfter"` // seconds
	UserMessageKey string         `json:"userMessageKey"`
	DocURL         string         `json:"docUrl"`
	Extensions     map[string]any `json:",embed"`
}

// droppedHeaders belong to the response that the problem replaces. A cached problem would reach all
// clients, and a cookie belongs to a success.
var droppedHeaders = []string{
	"Set-Cookie", "Etag", "Last-Modified", "Expires", "Age", "Vary", "X-Cache", "Location",
	"Content-Encoding", "Content-Length", "Content-Disposition", "Accept-Ranges", "Retry-After",
	"Cdn-Cache-Control", "Surrogate-Control",
}

// Write sends the problem of FromError(err) as application/problem+json with Cache-Control:
// no-store, and returns it. It drops the headers of the response it replaces, such as Set-Cookie,
// Vary and ETag. No other code writes errors. Call Write before any other write to w: after the
// start of the response the client gets the first status and the problem's JSON behind the first
// body.
//
// A detail, field error or extension without a JSON form is replaced by the texts of the catalogue.
// A failed write to the client is ignored. Write panics if FromError(err) is nil or the Kind has no
// status. It uses no store and takes no lock; w may export telemetry at the start of the response,
// see web.WriteJSON.
func Write(w http.ResponseWriter, at Occurrence, err error) *Problem {
	p := FromError(err)
	b := wireBody{
		Type:           p.Kind.Type(),
		Title:          p.Kind.Title,
		Status:         p.Kind.Status,
		Detail:         p.Detail,
		Instance:       at.Instance,
		Code:           p.Kind.PublicCode(),
		Errors:         p.Fields,
		TraceID:        at.TraceID,
		RequestID:      at.RequestID,
		Retriable:      p.Kind.Retriable,
		UserMessageKey: p.Kind.MessageKey(),
		DocURL:         p.Kind.Type(),
		Extensions:     p.Extensions,
	}
	h := w.Header()
	for _, name := range droppedHeaders {
		delete(h, name)
	}
	if p.RetryAfter > 0 {
		seconds := int64((p.RetryAfter + time.Second - 1) / time.Second)
		b.RetryAfter = &seconds
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	text, err := json.Marshal(&b)
	if err != nil {
		// A detail or an extension without a JSON form is a programming error; send the catalogue's
		// texts.
		b.Detail, b.Errors, b.Extensions = p.Kind.Title, nil, nil
		text, _ = json.Marshal(&b)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(p.Kind.Status)
	_, _ = w.Write(text) // fails only when the client is gone
	return p
}
