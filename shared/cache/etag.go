package cache

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
)

// digest identifies a compressed body: 128 bits of its SHA-256, stored in the entry's header, so a
// hit has an ETag without decompressing. Equal digests mean equal bodies; a release with a
// different compressor output changes every ETag once and costs a client 1 download. The CRC of
// gzip has 32 bits: of billions of revalidations some would match by chance and answer 304 wrongly.
// Hashing 5 KB with each response costs 6 µs; storing the digest costs 16 bytes of the entry.
type digest [16]byte

func digestOf(compressed []byte) digest {
	sum := sha256.Sum256(compressed)
	return digest(sum[:16])
}

// WriteShared writes the entry as a shared response, the same for every client of the URL. It adds
// a strong ETag and answers 304 without a body if If-None-Match names this ETag or is *, whatever
// the status of the entry. Computing the ETag decompresses nothing. Otherwise it costs and fails as
// Write does without a tail. After an error it removes the ETag from the headers; that has an
// effect only if the headers were not sent, as after a corrupt body.
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

// etag returns the ETag of the bytes to send. A strong ETag belongs to a single encoding, so gzip
// has a suffix.
func (e *Entry) etag(gzipped bool) string {
	tag := `"` + base64.RawURLEncoding.EncodeToString(e.digest[:])
	if gzipped {
		tag += "-gzip"
	}
	return tag + `"`
}

// matchesETag reports whether If-None-Match, a list of tags or *, contains tag. A weak tag matches
// too: a proxy weakens a tag after changing only the encoding. Malformed text ends the list.
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
			end := strings.IndexByte(line[1:], '"') + 2 // a tag may contain a comma
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
