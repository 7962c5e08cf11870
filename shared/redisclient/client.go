package redisclient

import (
	"cmp"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ioTimeout bounds each part of a command by itself: waiting for a free connection, writing, reading. A caller that
// wants less says so by its context. A dial goes on beside the command that wanted it, for the next one, and may take
// longer.
const (
	ioTimeout   = 150 * time.Millisecond
	dialTimeout = 400 * time.Millisecond
	longTimeout = time.Second // instead of patience, of Patient
)

// Config says where Redis is.
type Config struct {
	Addr     string // host:port, or the path of a Unix socket
	Password string // of Memorystore's AUTH; empty: none
	PoolSize int    // connections at most; 0: 32
}

// Open makes a client and dials nothing. A command waits at most its context, and 150 ms each for a free connection,
// write and read, 400 ms for a new connection; it is never repeated, and fails at once with ErrAway while Redis is
// known to be out of reach.
func Open(cfg Config) redis.UniversalClient { return open(cfg, time.Now) }

// client has a twin on the same connections, for commands that may take longer.
type client struct {
	*redis.Client
	slow *redis.Client
}

// AddHook adds it to both: a client made by WithTimeout does not have the hooks of the one it is made from.
func (c *client) AddHook(hook redis.Hook) {
	c.Client.AddHook(hook)
	c.slow.AddHook(hook)
}

// WithLongTimeout is a client of Open, with its connections and what is known of Redis, for those whom an answer that is late
// serves better than none: it waits a second for each write and each read, or as long as the context says.
func WithLongTimeout(c redis.UniversalClient) redis.UniversalClient {
	if both, ok := c.(*client); ok {
		return both.slow
	}
	return c
}

func open(cfg Config, now func() time.Time) redis.UniversalClient {
	// The client would write plain lines to stderr about what every caller is told by an error anyway.
	logging.Disable()
	one := redis.NewClient(&redis.Options{
		Addr:     cfg.Addr,
		Password: cfg.Password,

		ContextTimeoutEnabled: true, // by default a context's deadline is ignored
		DialTimeout:           dialTimeout,
		ReadTimeout:           ioTimeout,
		WriteTimeout:          ioTimeout,
		PoolTimeout:           ioTimeout,
		MaxRetries:            -1, // a repeated script would count twice
		DialerRetries:         1,

		PoolSize:         cmp.Or(cfg.PoolSize, 32),
		PipelinePoolSize: -1, // one pool: almost everything here is a pipeline
		ConnMaxIdleTime:  5 * time.Minute,

		// No handshake beyond HELLO on a new connection, no push messages to look for on each reply.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	c := &client{one, one.WithTimeout(longTimeout)}
	s := &preconnector{client: c.slow}
	c.AddHook(spans{}) // first, so that it also sees what the breaker refuses
	// Before the breaker: a round trip that fails counts once, whoever shared it.
	one.AddHook(pipelineBatcher{ioTimeout: ioTimeout, preconnect: s.ensureIdle})
	c.slow.AddHook(pipelineBatcher{ioTimeout: longTimeout, preconnect: s.ensureIdle})
	c.AddHook(&breaker{now: now})
	return c
}
