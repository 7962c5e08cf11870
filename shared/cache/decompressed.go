package cache

import lru "github.com/hashicorp/golang-lru/v2"

// Clients that take no gzip are few, but unpacking a page costs as much as all the rest of a hit. So the bodies
// unpacked last are kept, by what names them: an entry that was stored anew has another digest.

const (
	maxDecompressed     = 256
	maxDecompressedSize = 64 << 10 // bytes; together at most 16 MiB
)

// bodyKey names a body by its packed form and by what it must unpack to.
type bodyKey struct {
	digest    digest
	crc, size uint32
}

func (e *Entry) bodyKey() bodyKey { return bodyKey{e.digest, e.crc, e.size} }

var decompressedBodies = func() *lru.Cache[bodyKey, []byte] {
	c, err := lru.New[bodyKey, []byte](maxDecompressed)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return c
}()

// decompressed is the body unpacked; it is shared and must not be changed.
func (e *Entry) decompressed() ([]byte, error) {
	key := e.bodyKey()
	if b, ok := decompressedBodies.Get(key); ok {
		return b, nil
	}
	b, err := e.appendBody(nil)
	if err == nil && len(b) <= maxDecompressedSize {
		decompressedBodies.Add(key, b)
	}
	return b, err
}
