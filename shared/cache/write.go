package cache

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// scratch holds buffers for the end of the gzip stream, or for the tail of an uncompressed
// response.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Write responds to r with the status and the body followed by tail. To a client that accepts gzip
// it copies the compressed bytes, unchecked. For other clients it decompresses the body, and keeps
// up to 256 bodies of at most 64 KiB in the process, behind a mutex held for a map access. It sets
// Content-Length, Content-Encoding, Vary and, if missing, Content-Type application/json. A HEAD
// request gets the headers only. Write returns an error for a corrupt body, to clients without
// gzip, before it changes the headers; after the headers, the error of writing to w. Write reads no
// Redis and has no time limit besides that of w. Safe for concurrent use with different w. An Entry
// with a status below 100, such as the zero Entry, makes net/http panic.
func (e *Entry) Write(w http.ResponseWriter, r *http.Request, tail []byte) error {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	var first []byte
	second, err := (*buf)[:0], error(nil)
	gzipped := acceptsGzip(r.Header)
	if gzipped {
		first, second = e.compressed, e.appendTrailer(second, tail)
	} else if first, err = e.decompressed(); err != nil {
		return err
	} else {
		second = append(second, tail...)
	}
	*buf = second // keep the grown buffer

	h := w.Header()
	if gzipped {
		h["Content-Encoding"] = []string{"gzip"}
	}
	addVary(h)
	if len(h["Content-Type"]) == 0 {
		h["Content-Type"] = []string{"application/json"}
	}
	h["Content-Length"] = []string{strconv.Itoa(len(first) + len(second))}
	w.WriteHeader(e.Status)
	if r.Method == http.MethodHead {
		return nil
	}
	if len(first) > 0 {
		if _, err := w.Write(first); err != nil {
			return err
		}
	}
	_, err = w.Write(second)
	return err
}

// addVary tells caches that the response depends on Accept-Encoding.
func addVary(h http.Header) {
	if !hasToken(h["Vary"], "Accept-Encoding") {
		h["Vary"] = append(h["Vary"], "Accept-Encoding")
	}
}

// acceptsGzip reports whether Accept-Encoding allows gzip: gzip or *, with a weight above 0.
// Without the header, which only tools and health checks omit, the response is not compressed.
func acceptsGzip(h http.Header) bool {
	any, named := false, false
	for _, line := range h["Accept-Encoding"] {
		for item := range strings.SplitSeq(line, ",") {
			coding, params, _ := strings.Cut(item, ";")
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				if !zeroQuality(params) {
					return true
				}
				named = true
			case coding == "*":
				any = !zeroQuality(params)
			}
		}
	}
	return any && !named
}

// zeroQuality reports whether the parameters of a coding have the weight 0: "q=0", "q=0.000".
func zeroQuality(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			value = strings.TrimSpace(value)
			return strings.HasPrefix(value, "0") && strings.Trim(value, "0.") == ""
		}
	}
	return false
}

// hasToken reports whether a comma-separated header contains a token.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}
