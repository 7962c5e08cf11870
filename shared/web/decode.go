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

// MaxDepth is how deep the objects and arrays of a body may nest.
const MaxDepth = 32

var rejectUnknown = json.RejectUnknownMembers(true)

var errBodyTooLarge = &problem.Problem{
	Kind: problem.PayloadTooLarge, Detail: "The body must be at most 64 KiB.",
	Fields: []problem.FieldError{{Field: "body", Code: "too-large", Detail: "Must be at most 64 KiB."}},
}

// Decode reads the body of a request into a pointer to a struct: JSON in UTF-8, names spelt exactly, nothing unknown,
// nothing twice, null only where the Go type is a pointer. What cannot be read is MalformedRequest or PayloadTooLarge,
// what can be read but not be meant is ValidationFailed; each names the field by its dotted path. Reading ends with the
// request's budget.
func Decode(r *http.Request, into any) error {
	return WithJSONBody(r, func(body []byte) error { return DecodeBytes(body, into) })
}

// WithJSONBody hands the whole body of a JSON request to read, which must not keep it. Its media type and size are checked
// before; what Decode does is Body and Parse.
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

// DecodeBytes decodes a body as Decode does.
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

// checkMediaType accepts application/json and application/*+json in UTF-8, as they are.
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
		charset, said := params["charset"]
		if err != nil || !ofApplication || name != "json" && !strings.HasSuffix(name, "+json") || said && !strings.EqualFold(charset, "utf-8") {
			return malformed("Content-Type", "media-type", "Send application/json in UTF-8.", nil)
		}
		return nil
	}
}

// readBody reads at most MaxBody bytes, and no longer than the request may take: a client that sends slowly must not
// hold us.
func readBody(r *http.Request, into *bytes.Buffer) error {
	if r.ContentLength > MaxBody {
		return errBodyTooLarge
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil // Decode says that it is empty
	}
	setReadDeadline(r)
	_, err := into.ReadFrom(http.MaxBytesReader(nil, r.Body, MaxBody))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return errBodyTooLarge
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err // without the addresses of both ends, which have no place in a log
	}
	if err != nil {
		return malformed("body", "incomplete", "The body ended early.", err)
	}
	return nil
}

// setReadDeadline lets the body be read no longer than the request may take.
func setReadDeadline(r *http.Request) {
	if c, ok := r.Context().Value(callKey{}).(*Call); ok {
		deadline, _ := r.Context().Deadline()
		// Not every writer has a connection behind it. The server lifts the deadline itself once the body is read, and
		// when that fails it must stay: the server would otherwise wait for the rest of the body before it sends the
		// answer.
		_ = http.NewResponseController(c.out.ResponseWriter).SetReadDeadline(deadline)
	}
}

// ReadPrefix reads a body to its end, whatever its media type, and keeps the first most bytes of it; whole reports that
// these are all. An error means that its end never came.
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
		return body, false, nil // nor is the rest of it waited for
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		err = failed.Err // without the addresses of both ends, which have no place in a log
	}
	if err != nil {
		return nil, false, malformed("body", "incomplete", "The body ended early.", err)
	}
	return body, rest == 0, nil
}

// decodeProblem turns the decoder's error into a problem that names the field and says what would be right, without repeating
// what was sent.
func decodeProblem(body []byte, err error) error {
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return syntaxProblem(body, e)
	}
	e, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return malformed("body", "syntax", "Must be JSON.", nil) // unreachable: the decoder has no other errors for bytes in memory
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
