package cache

import lru "github.com/hashicorp/golang-lru/v2"

// Few clients do not accept gzip, but decompressing a page costs as much as the rest of a hit. So
// the process keeps the bodies decompressed last. The key contains the digest, so a replaced entry
// never gets an old body.

const (
	maxDecompressed     = 256
	maxDecompressedSize = 64 << 10 // bytes; 256 bodies take at most 16 MiB
)

// bodyKey identifies a body by compressed form, checksum and size.
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

// decompressed returns the decompressed body. The slice is shared and must not be changed.
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
