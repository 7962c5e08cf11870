package web

import (
	"bytes"
	"encoding"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// shape is what can be known of a JSON text without decoding it.
type shape struct {
	depth int
	null  bool // a null may be somewhere outside strings
}

// scan looks at every byte once. It is right about JSON and harmless about anything else.
func scan(text []byte) shape {
	var s shape
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
			s.null = true
		}
	}
	return s
}

// deepest names the field that nests too deep, as far as the type knows its path: what the client made up stays out.
func deepest(text []byte, t reflect.Type) string {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for d.StackDepth() <= MaxDepth {
		if _, err := d.ReadToken(); err != nil {
			break // broken before it is deep
		}
	}
	_, ours := typeAt(t, d.StackPointer())
	return dotted(ours)
}

// forbiddenNull returns the path of the first null whose Go type has no way to hold it. The text has been decoded, so it is JSON.
func forbiddenNull(text []byte, t reflect.Type) (path string, found bool) {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return "", false // the end
		}
		if token.Kind() != 'n' {
			continue
		}
		at := d.StackPointer()
		if goType, _ := typeAt(t, at); at == "" || goType != nil && !holdsNull(goType) {
			return dotted(at), true
		}
	}
}

// holdsNull reports whether null means something for a field of the type: a pointer, any, or a type that decodes itself.
func holdsNull(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface || decodesItself(t)
}

var (
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	unmarshalerFrom = reflect.TypeFor[json.UnmarshalerFrom]()
	rawValue        = reflect.TypeFor[jsontext.Value]()
)

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t == rawValue || p.Implements(unmarshaler) || p.Implements(unmarshalerFrom)
}

// typeAt follows a JSON pointer through a Go type. It returns the type of the value there, nil when the type does not say,
// and the part of the pointer whose names are ours: those of a map are the client's.
func typeAt(t reflect.Type, p jsontext.Pointer) (at reflect.Type, ours jsontext.Pointer) {
	at = t
	made := false // a name was made up by the client
	for token := range p.Tokens() {
		for at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if decodesItself(at) {
			return nil, ours
		}
		switch at.Kind() {
		case reflect.Struct:
			field, ok := fieldNamed(at, token)
			if !ok {
				return nil, ours
			}
			at = field
		case reflect.Slice, reflect.Array:
			at = at.Elem()
		case reflect.Map:
			at, made = at.Elem(), true
		default:
			return nil, ours
		}
		if !made {
			ours = ours.AppendToken(token)
		}
	}
	return at, ours
}

// fieldNamed returns the type of the field with a JSON name, embedded structs included.
func fieldNamed(t reflect.Type, name string) (reflect.Type, bool) {
	for _, f := range reflect.VisibleFields(t) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name || tag == "" && !f.Anonymous && f.Name == name {
			return f.Type, true
		}
	}
	return nil, false
}
