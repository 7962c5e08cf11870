// Package guest takes a guest's session into a request and out of the request. Begin admits the
// request with a single Redis round trip for gate, session and handler. Finish writes the changed
// session and the buffered events before the response. The package never composes a response.
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
	timeout  time.Duration // for the round trip of Begin, and again for Finish
}

const (
	redisTimeout = 100 * time.Millisecond // then the request goes on without Redis
	// longRedisTimeout applies with WithLongTimeout. Twice 800 ms and the events fit into a
	// request's budget.
	longRedisTimeout = 800 * time.Millisecond
)

// New returns a controller for routes of the class gate.Read. instance is the producer name of this
// process in events. New dials nothing and never fails.
func New(
	rdb redis.UniversalClient, admission *gate.Gate, sessions *session.Store, tenants *tenants.SuspensionCache, outbox *outbox.Recorder,
	eraser *erasure.Eraser, instance string,
) *Controller {
	return &Controller{rdb, admission, gate.Read, sessions, tenants, outbox, eraser, instance, redisTimeout}
}

// WithClass returns a copy of c for routes of another class. The copy shares the stores and limits
// of c. No I/O.
func (c *Controller) WithClass(class gate.Class) *Controller {
	other := *c
	other.class = class
	return &other
}

// WithLongTimeout returns a copy of c with a timeout of 800 ms for Redis in Begin, and 800 ms in
// Finish. Use it for routes that refuse a guest without Redis, where a late reply is better than a
// refusal. While the circuit breaker of Redis is open, commands of the copy fail at once, as those
// of c do. The copy shares connections and breaker with c. WithLongTimeout does no I/O.
func (c *Controller) WithLongTimeout() *Controller {
	other := *c
	other.timeout = longRedisTimeout
	return &other
}

// pipeline returns a pipeline with a client timeout of at least c.timeout.
func (c *Controller) pipeline() redis.Pipeliner {
	if c.timeout > redisTimeout {
		return redisclient.WithLongTimeout(c.rdb).Pipeline()
	}
	return c.rdb.Pipeline()
}

// beginContext returns the context of Begin's round trip. A disconnect of the client does not
// cancel the context: otherwise a client could avoid the rate limits by hanging up.
func (c *Controller) beginContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
}

// gateClient returns the gate's view of a client. cookie is a genuine session id, or empty.
func gateClient(client *session.Client, cookie string) gate.Client {
	return gate.Client{
		Fingerprint: client.Fingerprint, Group: client.GroupHash(), Address: client.IPHash(), AddressKnown: client.HasIP(),
		UserAgent: client.UserAgentHash(), SessionID: cookie,
	}
}

// gateSession returns the gate's view of a session.
func gateSession(s *session.Session) gate.Session {
	return gate.Session{ID: s.ID, New: s.New, AllowsEvents: s.AllowsEvents(), ConsentKnown: s.ConsentKnown()}
}

// unreadSession stands for the session of a request without a read of the session. The guest of a
// cookie may have opted out of telemetry, so a request with a cookie allows no events.
func unreadSession(header http.Header, cookie string) gate.Session {
	return gate.Session{AllowsEvents: cookie == "" && !session.HasOptOut(header), ConsentKnown: true}
}
