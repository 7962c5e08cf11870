package redisclient

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ioTimeout bounds separately each part of a command: waiting for a free connection, writing,
// reading. The context of a caller may set less. A dial outlives the command that started the dial,
// and then serves a later command, so a dial may take longer.
const (
	ioTimeout   = 150 * time.Millisecond
	dialTimeout = 400 * time.Millisecond
	longTimeout = time.Second // replaces ioTimeout in WithLongTimeout
)

// Config is the address of Redis and the limits of the client.
type Config struct {
	Addr     string // host:port, or the path of a Unix socket
	Password string // for AUTH of Memorystore; empty: no AUTH
	PoolSize int    // maximum number of connections; 0: 32
}

// Open returns a client, dials nothing and never fails; a wrong address or password fails the first
// command. A command waits until the deadline of the context, and at most 150 ms for a free
// connection (then redis.ErrPoolTimeout), 400 ms for a new connection, and 150 ms each for write
// and read. A cancelled context prevents sending; a command already sent waits for the reply. The
// client never repeats a command. After 5 consecutive failures commands fail at once with
// ErrUnavailable for 1 s at a time.
//
// Concurrent pipelines of up to 64 commands may share a round trip and wait up to 10 ms for that;
// the shared round trip may end up to 70 ms before the deadline of a pipeline. A single command and
// a transaction never wait so. Mutexes of the process are held for a moment, never during I/O. Open
// also silences the log of go-redis for the whole process. The caller closes the client. Safe for
// concurrent use.
func Open(cfg Config) redis.UniversalClient { return open(cfg, time.Now) }

// client is a go-redis client with a second client, slow, on the same connections but with longer
// timeouts.
type client struct {
	*redis.Client
	slow *redis.Client
}

// AddHook adds the hook to both clients: go-redis does not copy hooks to a client from WithTimeout.
// It does no I/O and never fails.
func (c *client) AddHook(hook redis.Hook) {
	c.Client.AddHook(hook)
	c.slow.AddHook(hook)
}

// WithLongTimeout returns a client that shares the connections and the breaker of c, a client of
// Open, but waits up to 1 s for each write and each read, or until the deadline of the context. The
// limits for a free connection, 150 ms, and for a new connection, 400 ms, stay. Use it where a late
// reply is better than a failed request. A client from elsewhere is returned unchanged.
// WithLongTimeout does no I/O and never fails; each call returns the same client. Do not close the
// result. Safe for concurrent use.
func WithLongTimeout(c redis.UniversalClient) redis.UniversalClient {
	if c, ok := c.(*client); ok {
		return c.slow
	}
	return c
}

func open(cfg Config, now func() time.Time) redis.UniversalClient {
	// The client would log to stderr, as plain text, errors that every caller gets anyway.
	logging.Disable()
	one := redis.NewClient(&redis.Options{
		Addr:     cfg.Addr,
		Password: cfg.Password,

		ContextTimeoutEnabled: true, // by default a context's deadline is ignored
		DialTimeout:           dialTimeout,
		ReadTimeout:           ioTimeout,
		WriteTimeout:          ioTimeout,
		PoolTimeout:           ioTimeout,
		MaxRetries:            -1, // a repeated script would take effect twice
		DialerRetries:         1,

		PoolSize:         cmp.Or(cfg.PoolSize, 32),
		PipelinePoolSize: -1, // a single pool: almost every command here is in a pipeline
		ConnMaxIdleTime:  5 * time.Minute,

		// A new connection sends only HELLO, and replies are not searched for push messages.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c := &client{one, one.WithTimeout(longTimeout)}
	s := &preconnector{client: c.slow}
	c.AddHook(spans{}) // first, to see the commands refused by the breaker too
	// Before the breaker: a failed batch counts as a single failure.
	one.AddHook(pipelineBatcher{ioTimeout: ioTimeout, preconnect: s.ensureIdle})
	c.slow.AddHook(pipelineBatcher{ioTimeout: longTimeout, preconnect: s.ensureIdle})
	c.AddHook(&breaker{now: now})
	return c
}
