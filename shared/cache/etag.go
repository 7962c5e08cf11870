package cache

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// digest identifies a compressed body: 128 bits of its SHA-256, stored in the entry's header, so that
// a hit gets its ETag without decompressing. Equal digests mean equal bodies; a release whose
// compressor writes other bytes changes every ETag once, which costs a client one download. The CRC of
// gzip has 32 bits: of billions of revalidations some would match by chance and answer 304 wrongly.
// Hashing 5 KB with each response costs 6 µs; storing the digest costs 16 bytes of the entry.
type digest [16]byte

func digestOf(packed []byte) digest {
	sum := sha256.Sum256(packed)
	return digest(sum[:16])
}

// WriteShared is Write for an answer that is the same for everybody who asks for the same: it carries a strong ETag,
// and a client that has that answer is told so with 304 instead. Neither unpacks a body for it.
func (e *Entry) WriteShared(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	tag := e.etag(acceptsGzip(r.Header))
	h["Etag"] = []string{tag}
	if matchesETag(r.Header["If-None-Match"], tag) {
		addVary(h)
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	if err := e.Write(w, r, nil); err != nil {
		delete(h, "Etag")
		return err
	}
	return nil
}

// etag names the bytes that are sent: a strong ETag belongs to one encoding, so gzip has a suffix of its own.
func (e *Entry) etag(zipped bool) string {
	tag := `"` + base64.RawURLEncoding.EncodeToString(e.digest[:])
	if zipped {
		tag += "-gzip"
	}
	return tag + `"`
}

// matchesETag reads If-None-Match: tags in a list, or *. A weak tag will do: whoever weakened it changed no more than the
// encoding. What is not well formed ends the list.
func matchesETag(lines []string, tag string) bool {
	for _, line := range lines {
		if strings.TrimSpace(line) == "*" {
			return true
		}
		for {
			line = strings.TrimPrefix(strings.TrimLeft(line, " \t,"), "W/")
			if line == "" || line[0] != '"' {
				break
			}
			end := strings.IndexByte(line[1:], '"') + 2 // a tag may hold a comma
			if end < 2 {
				break
			}
			if line[:end] == tag {
				return true
			}
			line = line[end:]
		}
	}
	return false
}
