package web

import (
	"mime"
	"net/http"
	"strings"
)

// DecodeBeacon is Decode for requests of navigator.sendBeacon, with the same limit of 64 KiB, the
// same reading until the request's deadline and the same MalformedRequest, PayloadTooLarge and
// ValidationFailed problems. The JSON may also come as text/plain, the media type of a string, or
// without a media type, as browsers send a Blob without a type.
func DecodeBeacon(r *http.Request, into any) error {
	if !isBeacon(r.Header) {
		return Decode(r, into)
	}
	return withBody(r, func(body []byte) error { return DecodeBytes(body, into) })
}

// isBeacon reports whether the request has no media type, or text/plain in UTF-8.
func isBeacon(h http.Header) bool {
	if h.Get("Content-Encoding") != "" {
		return false
	}
	value := h.Get("Content-Type")
	if value == "" {
		return true
	}
	media, params, err := mime.ParseMediaType(value)
	charset, given := params["charset"]
	return err == nil && media == "text/plain" && (!given || strings.EqualFold(charset, "utf-8"))
}
