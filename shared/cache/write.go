package cache

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// scratch holds what is written beside the packed body, or the body unpacked.
var scratch = sync.Pool{New: func() any { return new([]byte) }}

// Write answers r with the body followed by tail: compressed if the client takes gzip, which costs no compressing and
// no unpacking, else unpacked. It sets Content-Length, Content-Encoding, Vary and, when there is none, Content-Type
// application/json. When it fails before anything was written, the headers are as they were.
func (e *Entry) Write(w http.ResponseWriter, r *http.Request, tail []byte) error {
	buf := scratch.Get().(*[]byte)
	defer scratch.Put(buf)
	var first []byte
	second, err := (*buf)[:0], error(nil)
	zipped := acceptsGzip(r.Header)
	if zipped {
		first, second = e.compressed, e.appendTrailer(second, tail)
	} else if first, err = e.decompressed(); err != nil {
		return err
	} else {
		second = append(second, tail...)
	}
	*buf = second // grown

	h := w.Header()
	if zipped {
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

// addVary says that the answer depends on the encodings the client takes.
func addVary(h http.Header) {
	if !hasToken(h["Vary"], "Accept-Encoding") {
		h["Vary"] = append(h["Vary"], "Accept-Encoding")
	}
}

// acceptsGzip reads Accept-Encoding: gzip, or anything, with a weight that is not 0. Without the header the answer is
// not compressed: what sends none are tools and health checks.
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

// zeroQuality reports a weight of 0: "q=0", "q=0.000".
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

// hasToken reports whether a comma-separated header names a token.
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
