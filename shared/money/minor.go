package money

import (
	"cmp"
	"errors"
	"strings"
)

// Minor is an amount in minor units as canonical decimal text: "450000". It is compared and passed on, never computed
// with.
type Minor string

// ErrMalformed is returned for a text that is no canonical amount.
var ErrMalformed = errors.New("money: malformed amount")

// maxDigits keeps every amount inside an int64, which is what other services hold it in.
const maxDigits = 18

// ParseMinor accepts a decimal integer of at most 18 digits without leading zeros or a plus sign; "-" may lead, "-0"
// may not.
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

// Negative reports whether the amount is below zero.
func (m Minor) Negative() bool { return strings.HasPrefix(string(m), "-") }

// Cmp is -1, 0 or 1 as m is less than, equal to or greater than other; both are what ParseMinor returned.
func (m Minor) Cmp(other Minor) int {
	switch {
	case m.Negative() && other.Negative():
		return other[1:].Cmp(m[1:])
	case m.Negative():
		return -1
	case other.Negative():
		return 1
	}
	return cmp.Or(cmp.Compare(len(m), len(other)), strings.Compare(string(m), string(other)))
}
