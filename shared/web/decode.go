package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// MaxDepth is the greatest nesting of objects and arrays in a body.
const MaxDepth = 32

var rejectUnknown = json.RejectUnknownMembers(true)

var errBodyTooLarge = &problem.Problem{
	Kind: problem.PayloadTooLarge, Detail: "The body must be at most 64 KiB.",
	Fields: []problem.FieldError{{Field: "body", Code: "too-large", Detail: "Must be at most 64 KiB."}},
}

// Decode reads the body of a request into a pointer to a struct. The body must be JSON in UTF-8 of
// at most 64 KiB and 32 levels, with exact names, no unknown or duplicate names, and null only for
// pointers, interfaces and types that decode themselves. A missing, wrong or encoded media type, an
// empty body or a body that is not such JSON is a MalformedRequest problem, a larger body a
// PayloadTooLarge problem, an unknown name or a wrong value a ValidationFailed problem; each names
// the field by its dotted path. After an error into may be set in part.
//
// Decode waits for the client. Reading ends with the request's deadline, or when the client hangs
// up, as a MalformedRequest problem too (400, not 504); outside the pipeline no deadline applies.
// The body is read once: a second Decode finds it empty. No lock, no store; the whole body is in
// memory, in a reused buffer.
func Decode(r *http.Request, into any) error {
	return WithJSONBody(r, func(body []byte) error { return DecodeBytes(body, into) })
}

// WithJSONBody checks media type and size of a JSON request and calls read with the whole body, in
// a reused buffer: read must not keep the slice. It returns the error of read unchanged. A wrong
// media type or a body that ends early or after the request's deadline is a MalformedRequest
// problem, a body over 64 KiB a PayloadTooLarge problem; read is not called then. read gets an
// empty slice for an empty body. Decode is WithJSONBody with DecodeBytes.
func WithJSONBody(r *http.Request, read func(body []byte) error) error {
	if err := checkMediaType(r.Header); err != nil {
		return err
	}
	return withBody(r, read)
}

func withBody(r *http.Request, read func(body []byte) error) error {
	buffer := bufferPool.Get().(*bytes.Buffer)
	defer releaseBuffer(buffer)
	buffer.Reset()
	if err := readBody(r, buffer); err != nil {
		return err
	}
	return read(buffer.Bytes())
}

// DecodeBytes decodes a body with the rules and problems of Decode for JSON. It checks neither
// media type nor size. An empty body is a MalformedRequest problem. into must be a non-nil pointer:
// for any other value a JSON body is a ValidationFailed problem. CPU and memory only; it decodes a
// body that contains the word null twice.
func DecodeBytes(body []byte, into any) error {
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return malformed("body", "empty", "Send a JSON object.", nil)
	}
	if err := checkDepth(body, reflect.TypeOf(into)); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into, rejectUnknown); err != nil {
		return decodeProblem(body, err)
	}
	return checkNulls(body, into)
}

func malformed(field, code, detail string, cause error) error {
	p := problem.New(problem.MalformedRequest, "See errors for what could not be read.", cause)
	p.Fields = []problem.FieldError{{Field: field, Code: code, Detail: detail}}
	return p
}

// checkMediaType accepts application/json and application/*+json in UTF-8 without a content
// encoding.
func checkMediaType(h http.Header) error {
	if h.Get("Content-Encoding") != "" {
		return malformed("Content-Encoding", "media-type", "Send the body without a content encoding.", nil)
	}
	switch value := h.Get("Content-Type"); value {
	case "application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8":
		return nil
	default:
		media, params, err := mime.ParseMediaType(value)
		name, ofApplication := strings.CutPrefix(media, "application/")
		charset, given := params["charset"]
		if err != nil || !ofApplication || name != "json" && !strings.HasSuffix(name, "+json") || given && !strings.EqualFold(charset, "utf-8") {
			return malformed("Content-Type", "media-type", "Send application/json in UTF-8.", nil)
		}
		return nil
	}
}

// readBody reads at most MaxBody bytes, until the request's deadline at the latest: a slow client
// must not hold the instance.
func readBody(r *http.Request, into *bytes.Buffer) error {
	if r.ContentLength > MaxBody {
		return errBodyTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil // DecodeBytes reports the empty body
	}
	setReadDeadline(r)
	_, err := into.ReadFrom(http.MaxBytesReader(nil, r.Body, MaxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return errBodyTooLarge
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err // without the addresses of both ends, which must not be logged
	}
	if err != nil {
		return malformed("body", "incomplete", "The body ended early.", err)
	}
	return nil
}

// setReadDeadline ends the reading of the body with the request's deadline.
func setReadDeadline(r *http.Request) {
	if c, ok := r.Context().Value(callKey{}).(*Call); ok {
		deadline, _ := r.Context().Deadline()
		// The error is ignored: a test's writer has no connection. The server removes the deadline
		// itself once the body is read. If reading fails, the deadline must stay: the server would
		// otherwise wait for the rest of the body before it sends the response.
		_ = http.NewResponseController(c.out.ResponseWriter).SetReadDeadline(deadline)
	}
}

// ReadPrefix reads a body of any media type to its end and returns its first most bytes; whole
// reports that the body has no more. Without a body it returns (nil, true, nil). A body over the
// limit of the route (64 KiB, or 14 MiB of an internal endpoint) is no error: whole is false and
// the rest is not read.
//
// ReadPrefix returns a MalformedRequest problem, and no bytes, if the body ends early or is not
// there by the request's deadline; outside the pipeline no deadline applies. It keeps most bytes in
// memory and discards the rest as it arrives. No lock, no store.
func ReadPrefix(r *http.Request, most int) (body []byte, whole bool, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, true, nil
	}
	setReadDeadline(r)
	body, err = io.ReadAll(io.LimitReader(r.Body, int64(most)))
	var rest int64
	if err == nil {
		rest, err = io.Copy(io.Discard, r.Body)
	}
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return body, false, nil // the rest of a body over the limit is not read
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err // without the addresses of both ends, which must not be logged
	}
	if err != nil {
		return nil, false, malformed("body", "incomplete", "The body ended early.", err)
	}
	return body, rest == 0, nil
}

// decodeProblem turns the decoder's error into a problem that names the field and describes a valid
// value. The problem does not repeat the invalid value.
func decodeProblem(body []byte, err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return syntaxProblem(body, e)
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		// unreachable: the decoder has no other errors for bytes in memory
		return malformed("body", "syntax", "Must be JSON.", nil)
	}
	field := problem.FieldError{Field: dottedPath(e.JSONPointer)}
	own, isField := errors.AsType[problem.FieldError](e.Err)
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		field.Code, field.Detail = problem.UnknownField, "There is no such field."
	case isField:
		field.Code, field.Detail = own.Code, own.Detail
	case isOutOfRange(e):
		field.Code, field.Detail = "out-of-range", "The number is out of range."
	default:
		field.Code, field.Detail = "type", "Must be "+describeType(e.GoType)+"."
	}
	return problem.Invalid(field)
}
