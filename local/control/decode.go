package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// decode reads a body of at most 64 KiB, whatever its media type: these routes are called by hand.
func decode(r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, web.MaxBody))
	if err != nil {
		return problem.New(problem.MalformedRequest, "The body could not be read.", err)
	}
	err = json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	if wrong, ok := member(err); ok {
		return problem.Invalid(wrong)
	}
	if err != nil {
		return problem.New(problem.MalformedRequest, "The body must be a JSON object.", err)
	}
	return nil
}

// member is the member that an error of decoding is about; ok is false when it is about no single one.
func member(err error) (_ problem.Field, ok bool) {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	switch {
	case !ok:
		return problem.Field{}, false
	case errors.Is(err, json.ErrUnknownName):
		return problem.Field{Field: field(wrong.JSONPointer), Code: problem.Unknown, Detail: "There is no such member."}, true
	default:
		return problem.Field{Field: field(wrong.JSONPointer), Code: "type", Detail: fmt.Sprintf("Must not be a JSON %v.", wrong.JSONKind)}, true
	}
}

// field is the dotted path of a JSON pointer.
func field(p jsontext.Pointer) string {
	path := strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", ".")
	if path == "" {
		return "body"
	}
	return path
}
