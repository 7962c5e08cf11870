package functest

import (
	"sync/atomic"
	"time"
)

// Clock is a clock moved by the test only, in whole milliseconds. Safe for concurrent use.
type Clock struct{ ms atomic.Int64 }

// Now returns the current time of the clock.
func (c *Clock) Now() time.Time { return time.UnixMilli(c.ms.Load()).UTC() }

// Set moves the clock to now, forwards or back.
func (c *Clock) Set(now time.Time) { c.ms.Store(now.UnixMilli()) }

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }
