package web

import (
	"bytes"
	"encoding"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// jsonShape is what can be known of a JSON text without decoding it.
type jsonShape struct {
	depth   int
	hasNull bool // a null may be somewhere outside strings
}

// scanJSON looks at every byte once. It is right about JSON and harmless about anything else.
func scanJSON(text []byte) jsonShape {
	var s jsonShape
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			s.depth = max(s.depth, depth)
		case '}', ']':
			depth--
		case 'n':
			s.hasNull = true
		}
	}
	return s
}

// deepestKnownPath names the field that nests too deep, as far as the type knows its path: what the client made up stays out.
func deepestKnownPath(text []byte, t reflect.Type) string {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for d.StackDepth() <= MaxDepth {
		if _, err := d.ReadToken(); err != nil {
			break // broken before it is deep
		}
	}
	var ours jsontext.Pointer
	for token := range d.StackPointer().Tokens() {
		if t = memberType(t, token); t == nil {
			break
		}
		ours = ours.AppendToken(token)
		if t.Kind() == reflect.Map {
			break // its names are the client's
		}
	}
	return dottedPath(ours)
}

// forbiddenNull returns the path of the first null whose Go type has no way to hold it. The text was decoded into the
// type, so it is JSON and all its names are known.
func forbiddenNull(text []byte, t reflect.Type) (path string, found bool) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if findNull(d, t.Elem()) {
		return dottedPath(d.StackPointer()), true
	}
	return "", false
}

// findNull reads one value and stops behind the first forbidden null in it.
func findNull(d *jsontext.Decoder, t reflect.Type) bool {
	kind := d.PeekKind()
	switch {
	case kind == 'n':
		_, _ = d.ReadToken()
		return !acceptsNull(t)
	case kind != '{' && kind != '[' || t.Kind() == reflect.Interface || hasCustomDecoder(t):
		_ = d.SkipValue()
		return false
	}
	_, _ = d.ReadToken()
	for next := d.PeekKind(); next != '}' && next != ']' && next != 0; next = d.PeekKind() {
		name := ""
		if kind == '{' {
			token, err := d.ReadToken()
			if err != nil {
				return false // unreachable: the text is JSON
			}
			name = token.String()
		}
		if inner := memberType(t, name); inner == nil {
			_ = d.SkipValue()
		} else if findNull(d, inner) {
			return true
		}
	}
	_, _ = d.ReadToken()
	return false
}

// acceptsNull reports whether null means something for a type: for a pointer, for any, and for a type that decodes
// itself.
func acceptsNull(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || hasCustomDecoder(t)
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	unmarshalerFrom = reflect.TypeFor[json.UnmarshalerFrom]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	rawValue        = reflect.TypeFor[jsontext.Value]()
)

func hasCustomDecoder(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
	return t.Elem() == rawValue || t.Implements(unmarshaler) || t.Implements(unmarshalerFrom)
}

// memberType returns the type of a named member or an element of values of type t, nil when t has no such.
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

// fieldType returns the type of the field with a JSON name, embedded structs included; nil when there is none.
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
