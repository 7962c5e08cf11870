package money

import (
	"cmp"
	"errors"
	"strings"
)

// Minor is an amount in minor units as canonical decimal text: "450000". This service compares
// amounts and passes amounts on, and never computes with amounts.
type Minor string

// ErrMalformed is the error for a text that is not a canonical amount.
var ErrMalformed = errors.New("money: malformed amount")

// maxDigits keeps every amount within int64, the type of other services.
const maxDigits = 18

// ParseMinor parses a decimal integer of at most 18 digits, with an optional minus sign, without
// leading zeros or a plus sign. "-0" and any other text give "" and ErrMalformed.
func ParseMinor(s string) (Minor, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > maxDigits || digits[0] == '0' && s != "0" {
		return "", ErrMalformed
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return "", ErrMalformed
		}
	}
	return Minor(s), nil
}

// Negative reports whether the amount is below zero. m must come from ParseMinor; an empty m is not
// negative.
func (m Minor) Negative() bool { return strings.HasPrefix(string(m), "-") }

// Cmp returns -1, 0 or 1 for m less than, equal to or greater than n, in minor units whatever the
// currencies. Both must come from ParseMinor; for other texts the result has no meaning, without a
// panic.
func (m Minor) Cmp(n Minor) int {
	switch {
	case m.Negative() && n.Negative():
		return n[1:].Cmp(m[1:])
	case m.Negative():
		return -1
	case n.Negative():
		return 1
	}
	return cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(string(m), string(n)))
}
