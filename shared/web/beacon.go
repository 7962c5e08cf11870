package web

import (
	"mime"
	"net/http"
	"strings"
)

// DecodeBeacon is Decode for what navigator.sendBeacon sends: JSON also when it is called text/plain, as a string is,
// or nothing, as a Blob without a type is.
func DecodeBeacon(r *http.Request, into any) error {
	if !isBeacon(r.Header) {
		return Decode(r, into)
	}
	return withBody(r, func(body []byte) error { return DecodeBytes(body, into) })
}

func isBeacon(h http.Header) bool {
	if h.Get("Content-Encoding") != "" {
		return false
	}
	value := h.Get("Content-Type")
	if value == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(value)
	charset, said := params["charset"]
	return err == nil && media == "text/plain" && (!said || strings.EqualFold(charset, "utf-8"))
}
