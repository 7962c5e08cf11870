package cache

import (
	"fmt"

	"github.com/go-json-experiment/json"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Decoder decodes JSON bodies and keeps the last results in memory, to save decompressing and
// decoding a small, popular entry for each request. The caller still reads the entry from Redis
// each time, so a Decoder never returns the value of a replaced entry. Safe for concurrent use.
type Decoder[T any] struct{ lru *lru.Cache[bodyKey, *T] }

// NewDecoder returns a Decoder for the values of the n bodies used last. The memory is that of n
// decoded values. A non-positive n panics.
func NewDecoder[T any](n int) *Decoder[T] {
	c, err := lru.New[bodyKey, *T](n)
	if err != nil {
		panic(err)
	}
	return &Decoder[T]{c}
}

// Decode returns the decoded JSON body of e. The value is shared with other callers; do not change
// it. A kept body costs a lookup under a mutex of the Decoder; another body is decompressed, up to
// 2 MiB, and decoded outside the mutex, by each of several concurrent callers. Decode does no I/O.
// It returns nil and an error if the body does not decompress or is not valid JSON for T; errors
// are not kept.
func (d *Decoder[T]) Decode(e *Entry) (*T, error) {
	key := e.bodyKey()
	if v, ok := d.lru.Get(key); ok {
		return v, nil
	}
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("cache: decode: %w", err)
	}
	d.lru.Add(key, v)
	return v, nil
}
