package web

import (
	"bytes"
	"encoding"
	"errors"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// checkDepth returns a problem when objects and arrays of a body nest deeper than MaxDepth. Only a
// body with more than MaxDepth opening brackets is read token by token; request bodies have fewer.
// A syntax error before the first value at that depth is left to the decoder.
func checkDepth(body []byte, t reflect.Type) error {
	if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) <= MaxDepth {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(body))
	for d.StackDepth() <= MaxDepth {
		if _, err := d.ReadToken(); err != nil {
			return nil
		}
	}
	return malformed(knownPath(d.StackPointer(), t), "depth", "Objects and arrays may nest at most 32 deep.", nil)
}

// knownPath returns the part of a path that the type t declares. The rest may hold names invented
// by the client, and stays out of the response.
func knownPath(path jsontext.Pointer, t reflect.Type) string {
	var known jsontext.Pointer
	for token := range path.Tokens() {
		if t = memberType(t, token); t == nil {
			break
		}
		known = known.AppendToken(token)
		if t.Kind() == reflect.Map {
			break // the client invents its names
		}
	}
	return dottedPath(known)
}

// checkNulls returns a problem for the first null for a Go type without null: the decoder would
// leave the zero value. The decoder must have accepted the body for into's type before. A body with
// the word null is decoded again.
func checkNulls(body []byte, into any) error {
	if !bytes.Contains(body, []byte("null")) {
		return nil
	}
	again := reflect.New(reflect.TypeOf(into).Elem()).Interface()
	if err := json.Unmarshal(body, again, rejectUnknown, rejectNull); err != nil {
		return decodeProblem(body, err)
	}
	return nil
}

// rejectNull makes the decoder fail at a null for a Go type without null.
var rejectNull = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, into any) error {
	if d.PeekKind() == 'n' && !acceptsNull(reflect.TypeOf(into).Elem()) {
		return problem.FieldError{Code: "null", Detail: "Must not be null. Leave it out instead."}
	}
	return errors.ErrUnsupported // decode as usual
}))

// acceptsNull reports whether null is a value of t: a pointer, any, or a type with a decoder of its
// own.
func acceptsNull(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || hasCustomDecoder(t)
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	unmarshalerFrom = reflect.TypeFor[json.UnmarshalerFrom]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	rawValue        = reflect.TypeFor[jsontext.Value]()
)

// hasCustomDecoder reports whether t or *t has a JSON decoder of its own, or is jsontext.Value.
func hasCustomDecoder(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
	return t.Elem() == rawValue || t.Implements(unmarshaler) || t.Implements(unmarshalerFrom)
}

// memberType returns the type of a named member, or of the elements, of values of type t. The
// result is nil for an unknown name.
func memberType(t reflect.Type, name string) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if hasCustomDecoder(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return fieldType(t, name)
	case reflect.Slice, reflect.Array, reflect.Map:
		return t.Elem()
	}
	return nil
}

// fieldType returns the type of the field with a JSON name, also of embedded structs, or nil.
func fieldType(t reflect.Type, name string) reflect.Type {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == name, tag == "" && !f.Anonymous && f.Name == name:
			return f.Type
		case f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct:
			if inner := fieldType(f.Type, name); inner != nil {
				return inner
			}
		}
	}
	return nil
}
