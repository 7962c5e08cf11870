package problem

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
)

// Occurrence says which request a problem belongs to.
type Occurrence struct {
	Instance  string // path of the request, escaped, without the query
	RequestID string
	TraceID   string
}

// wireBody is the wire form: flat, in this order, every member always present.
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

// A refusal must not look like the answer it replaces: a cached one would be served to everybody, a cookie belongs to
// an answer.
var droppedHeaders = []string{
	"Set-Cookie", "Etag", "Last-Modified", "Expires", "Age", "Vary", "X-Cache", "Location",
	"Content-Encoding", "Content-Length", "Content-Disposition", "Accept-Ranges", "Retry-After",
	"Cdn-Cache-Control", "Surrogate-Control",
}

// Write answers with the problem in err's chain and returns it. It is the only writer of errors; nothing may have been
// written before.
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
		// An extension member or a detail that is no JSON is our mistake; the guest still gets the catalogue's words.
		b.Detail, b.Errors, b.Extensions = p.Kind.Title, nil, nil
		text, _ = json.Marshal(&b)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(p.Kind.Status)
	_, _ = w.Write(text) // the client may be gone; there is nobody else to tell
	return p
}
