package web

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// ValidateText checks a guest's text: valid UTF-8, no control characters, at most most characters.
// It returns nil for a valid text, the empty text included, otherwise a field error with the first
// that applies of the codes "too-long", "utf-8" and "control-character". Line ends and tabs are
// control characters. Joiners and direction marks, which Persian and Arabic need, are not. Pure.
func ValidateText(field, s string, most int) *problem.FieldError {
	switch {
	case utf8.RuneCountInString(s) > most:
		return &problem.FieldError{Field: field, Code: "too-long", Detail: fmt.Sprintf("Must be at most %d characters.", most)}
	case !utf8.ValidString(s):
		return &problem.FieldError{Field: field, Code: "utf-8", Detail: "Must be valid UTF-8."}
	case strings.ContainsFunc(s, unicode.IsControl):
		return &problem.FieldError{Field: field, Code: "control-character", Detail: "Must not contain control characters."}
	}
	return nil
}
