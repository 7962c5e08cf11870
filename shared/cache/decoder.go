package cache

import (
	"fmt"
	"github.com/go-json-experiment/json"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Decoder keeps what the bodies read last say, so that a small entry many ask for is not unpacked and decoded each
// time. Redis is asked all the same whether the entry is still that one. Safe for concurrent use.
type Decoder[T any] struct{ lru *lru.Cache[bodyKey, *T] }

// NewDecoder makes one for n bodies.
func NewDecoder[T any](n int) *Decoder[T] {
	c, err := lru.New[bodyKey, *T](n)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Decoder[T]{c}
}

// Decode is what the body of e says as JSON; it is shared and must not be changed.
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
