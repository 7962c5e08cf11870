package cache

import (
	"fmt"
	"github.com/go-json-experiment/json"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Decoded keeps what the bodies read last say, so that a small entry many ask for is not unpacked and decoded each
// time. Redis is asked all the same whether the entry is still that one. Safe for concurrent use.
type Decoded[T any] struct{ kept *lru.Cache[plainKey, *T] }

// NewDecoded makes one for n bodies.
func NewDecoded[T any](n int) *Decoded[T] {
	c, err := lru.New[plainKey, *T](n)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &Decoded[T]{c}
}

// Of is what the body of e says as JSON; it is shared and must not be changed.
func (d *Decoded[T]) Of(e *Entry) (*T, error) {
	key := e.plainKey()
	if v, ok := d.kept.Get(key); ok {
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
	d.kept.Add(key, v)
	return v, nil
}
