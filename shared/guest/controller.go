// Package guest takes a guest's session into a request and out of it. Begin reads the session in the one Redis round trip
// that the request starts with, together with what package gate and the handler read; Finish writes the changed session and
// the buffered events before the response. It never composes a response.
package guest

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/erasure"
	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
)

// Controller begins and finishes the requests of one function. Safe for concurrent use.
type Controller struct {
	rdb      redis.UniversalClient
	gate     *gate.Gate
	class    gate.Class
	sessions *session.Store
	tenants  *tenants.SuspensionCache
	outbox   *outbox.Recorder
	eraser   *erasure.Eraser
	instance string
	timeout  time.Duration // for the round trip of Begin, and for that of Finish
}

const (
	redisTimeout     = 100 * time.Millisecond // after it the request goes on without Redis
	longRedisTimeout = 800 * time.Millisecond // of WithLongTimeout: two of them and the events fit into a request's budget
)

// New returns a controller for routes of the class gate.Read. instance is the producer name of this process in events.
func New(
	rdb redis.UniversalClient, admission *gate.Gate, sessions *session.Store, tenants *tenants.SuspensionCache, outbox *outbox.Recorder,
	eraser *erasure.Eraser, instance string,
) *Controller {
	return &Controller{rdb, admission, gate.Read, sessions, tenants, outbox, eraser, instance, redisTimeout}
}

// WithClass returns a copy of c for routes of another class.
func (c *Controller) WithClass(class gate.Class) *Controller {
	other := *c
	other.class = class
	return &other
}

// WithLongTimeout returns a copy of c that waits up to 800 ms for Redis in Begin, and again in Finish. Use it for routes that
// refuse a guest without Redis, where a late reply is better than a refusal. While the circuit breaker of Redis is open,
// the copy waits no longer than c.
func (c *Controller) WithLongTimeout() *Controller {
	other := *c
	other.timeout = longRedisTimeout
	return &other
}

// pipeline returns a pipeline whose client may wait as long as c.timeout.
func (c *Controller) pipeline() redis.Pipeliner {
	if c.timeout > redisTimeout {
		return redisclient.WithLongTimeout(c.rdb).Pipeline()
	}
	return c.rdb.Pipeline()
}

// beginContext returns the context of Begin's round trip. It ignores that the client hung up: otherwise a client could avoid
// the rate limits by not waiting for the response.
func (c *Controller) beginContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
}

// gateClient returns what the gate knows a client by. cookie is its genuine session id, or empty.
func gateClient(client *session.Client, cookie string) gate.Client {
	return gate.Client{
		Fingerprint: client.Fingerprint, Group: client.GroupHash(), Address: client.IPHash(), AddressKnown: client.HasIP(),
		UserAgent: client.UserAgentHash(), SessionID: cookie,
	}
}

// gateSession returns what the gate has to know of a session.
func gateSession(s *session.Session) gate.Session {
	return gate.Session{ID: s.ID, New: s.New, AllowsEvents: s.AllowsEvents(), ConsentKnown: s.ConsentKnown()}
}

// unreadSession stands for the session of a request that did not read it. If the client sent a cookie, its guest may have
// opted out of telemetry, so there are no events.
func unreadSession(header http.Header, cookie string) gate.Session {
	return gate.Session{AllowsEvents: cookie == "" && !session.HasOptOut(header), ConsentKnown: true}
}
