package cache

import lru "github.com/hashicorp/golang-lru/v2"

// Clients that take no gzip are few, but unpacking a page costs as much as all the rest of a hit. So the bodies
// unpacked last are kept, by what names them: an entry that was stored anew has another digest.

const (
	keptPlains   = 256
	largestPlain = 64 << 10 // bytes; together at most 16 MiB
)

// plainKey names a body by its packed form and by what it must unpack to.
type plainKey struct {
	digest    digest
	crc, size uint32
}

func (e *Entry) plainKey() plainKey { return plainKey{e.digest, e.crc, e.size} }

var plains = func() *lru.Cache[plainKey, []byte] {
	c, err := lru.New[plainKey, []byte](keptPlains)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return c
}()

// plain is the body unpacked; it is shared and must not be changed.
func (e *Entry) plain() ([]byte, error) {
	key := e.plainKey()
	if b, ok := plains.Get(key); ok {
		return b, nil
	}
	b, err := e.appendBody(nil)
	if err == nil && len(b) <= largestPlain {
		plains.Add(key, b)
	}
	return b, err
}
