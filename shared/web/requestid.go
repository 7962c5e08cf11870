package web

import (
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// requestID returns the client's X-Request-Id if it is a ULID, a UUID or an id of this service, so
// that both sides can find the request. Otherwise it returns a new id.
func requestID(h http.Header, at time.Time) string {
	if v := h.Get("X-Request-Id"); isULID(strings.TrimPrefix(v, string(id.Request))) || isUUID(v) {
		return v
	}
	return id.New(id.Request, at)
}

func isULID(s string) bool {
	if len(s) != ulid.EncodedSize {
		return false
	}
	_, err := ulid.ParseStrict(s)
	return err == nil
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (s[i] == '-') || !dash && !isHex(s[i]|0x20) {
			return false
		}
	}
	return true
}

// joinTrace continues the trace of the W3C traceparent header, or starts a new trace, with a new
// span id.
func (c *Call) joinTrace(h http.Header) {
	const version = len("00-")
	parent := h["Traceparent"]
	if len(parent) == 1 && validTraceparent(parent[0]) {
		c.TraceID = parent[0][version : version+32]
		c.sampled = (hexValue(parent[0][54])|hexValue(parent[0][53])<<4)&1 == 1
	}
	// Trace ids are no secrets: they only have to be unique.
	var random [24]byte
	for i := range 3 {
		n := rand.Uint64()
		if i == 0 {
			n |= 1 // an id of zeros is invalid
		}
		if i == 2 {
			n |= 1 << 63
		}
		for j := range 8 {
			random[i*8+j] = byte(n >> (8 * j))
		}
	}
	var text [55]byte
	copy(text[:], "00-")
	if c.TraceID != "" {
		copy(text[version:], c.TraceID)
	} else {
		hex.Encode(text[version:], random[:16])
	}
	text[35] = '-'
	hex.Encode(text[36:], random[16:])
	copy(text[52:], "-00")
	if c.sampled {
		text[54] = '1'
	}
	c.Traceparent = string(text[:])
	c.TraceID, c.spanID = c.Traceparent[3:35], c.Traceparent[36:52]
}

// validTraceparent reports whether s is a W3C traceparent. Version 00 must have its exact length;
// later versions may be longer, as the recommendation demands.
func validTraceparent(s string) bool {
	const length = len("00-00000000000000000000000000000000-0000000000000000-00")
	if len(s) < length || len(s) > length && (strings.HasPrefix(s, "00") || s[length] != '-') {
		return false
	}
	for i := range length {
		dash := i == 2 || i == 35 || i == 52
		if dash != (s[i] == '-') || !dash && !isHex(s[i]) {
			return false
		}
	}
	return s[:2] != "ff" && strings.Trim(s[3:35], "0") != "" && strings.Trim(s[36:52], "0") != ""
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

func hexValue(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}
