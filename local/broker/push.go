package broker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/go-json-experiment/json"
)

// Answer is what a function said to one push.
type Answer struct {
	Status int    // 0: there was no answer
	Type   string // media type of Body
	Body   []byte // at most maxAnswer of it
	Err    string // why there was none; "" when there was
	Took   time.Duration
}

// Acknowledges reports whether the message is done with.
func (a Answer) Acknowledges() bool {
	switch a.Status {
	case http.StatusProcessing, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return true
	}
	return false
}

const maxAnswer = 64 << 10

// wrapped is the body of a push, as Pub/Sub writes it: some members twice.
type wrapped struct {
	Message         wrappedMessage `json:"message"`
	Subscription    string         `json:"subscription"`
	DeliveryAttempt int            `json:"deliveryAttempt"`
}

type wrappedMessage struct {
	Data         []byte            `json:"data,omitempty"` // in base64
	Attributes   map[string]string `json:"attributes,omitempty"`
	MessageID    string            `json:"messageId"`
	MessageID2   string            `json:"message_id"`
	PublishTime  time.Time         `json:"publishTime"`
	PublishTime2 time.Time         `json:"publish_time"`
	OrderingKey  string            `json:"orderingKey,omitempty"`
}

// pusher posts messages to functions.
type pusher struct {
	client *http.Client
	doors  map[string]string // URL by function
}

func newPusher(doors map[string]string) *pusher {
	return &pusher{
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: maxPushes, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		doors: doors,
	}
}

// push sends a message to the function of a subscription, named in full, and waits for the answer until the
// acknowledgement deadline.
func (p *pusher) push(ctx context.Context, s Subscription, name string, m *pb.PubsubMessage, attempt int) Answer {
	begun := time.Now()
	a := p.post(ctx, s, name, m, attempt)
	a.Took = time.Since(begun)
	return a
}

func (p *pusher) post(ctx context.Context, s Subscription, name string, m *pb.PubsubMessage, attempt int) Answer {
	at := m.PublishTime.AsTime()
	body, err := json.Marshal(wrapped{
		Message:      wrappedMessage{m.Data, m.Attributes, m.MessageId, m.MessageId, at, at, m.OrderingKey},
		Subscription: name, DeliveryAttempt: attempt,
	})
	if err != nil {
		return Answer{Err: err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.AckDeadline, errDeadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.doors[s.Function], bytes.NewReader(body))
	if err != nil {
		return Answer{Err: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "APIs-Google; (+https://developers.google.com/webmasters/APIs-Google)")
	res, err := p.client.Do(req)
	if err != nil {
		return Answer{Err: why(ctx, err)}
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return Answer{Err: why(ctx, err)}
	}
	return Answer{Status: res.StatusCode, Type: res.Header.Get("Content-Type"), Body: said}
}

var errDeadline = errors.New("no answer within the acknowledgement deadline")

// why is the cause of a push without an answer.
func why(ctx context.Context, err error) string {
	if errors.Is(context.Cause(ctx), errDeadline) {
		return errDeadline.Error()
	}
	return err.Error()
}
