package web

import (
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// syntaxProblem returns the problem of a body that is not JSON.
func syntaxProblem(body []byte, e *jsontext.SyntacticError) error {
	field := dottedPath(e.JSONPointer)
	switch {
	case errors.Is(e.Err, jsontext.ErrDuplicateName):
		return malformed(field, "duplicate", "Must be there only once.", nil)
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return malformed(field, "syntax", "The JSON ends early.", nil)
	case !utf8.Valid(body):
		return malformed(field, "utf-8", "Must be valid UTF-8.", nil)
	}
	return malformed(field, "syntax", "Is not JSON at byte "+strconv.FormatInt(e.ByteOffset, 10)+".", nil)
}

// isOutOfRange reports whether a number is too large for its type, as opposed to a number of the
// wrong kind, such as 1.5 for a whole number.
func isOutOfRange(e *json.SemanticError) bool { return errors.Is(e.Err, strconv.ErrRange) }

// describeType describes the JSON form of a Go type.
func describeType(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Map:
		return "an object"
	case reflect.Struct:
		if reflect.PointerTo(t).Implements(textUnmarshaler) {
			return "a string"
		}
		return "an object"
	}
	return "a string"
}

// maxPathBytes bounds the length of a path in a response: its names may come from the client.
const maxPathBytes = 128

// dottedPath turns "/filters/amenities/3" into "filters.amenities.3", and the root into "body".
func dottedPath(p jsontext.Pointer) string {
	var b strings.Builder
	for token := range p.Tokens() {
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(token)
		if b.Len() > maxPathBytes {
			break
		}
	}
	s := b.String()
	if len(s) > maxPathBytes {
		cut := maxPathBytes
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	if s == "" {
		return "body"
	}
	return s
}
