package pubsub

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

// Response is what a function said to one push.
type Response struct {
	Status      int    // 0: there was no answer
	ContentType string // media type of Body
	Body        []byte // at most maxAnswer of it
	Err         string // why there was none; "" when there was
	Duration    time.Duration
}

// Acknowledges reports whether the message is done with.
func (a Response) Acknowledges() bool {
	switch a.Status {
	case http.StatusProcessing, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return true
	}
	return false
}

const maxResponseBody = 64 << 10

// pushRequest is the body of a push, as Pub/Sub writes it: some members twice.
type pushRequest struct {
	Message         pushMessage `json:"message"`
	Subscription    string      `json:"subscription"`
	DeliveryAttempt int         `json:"deliveryAttempt"`
}

type pushMessage struct {
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
	client    *http.Client
	endpoints map[string]string // URL by function
}

func newPusher(doors map[string]string) *pusher {
	return &pusher{
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: maxConcurrentPushes, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		endpoints: doors,
	}
}

// push sends a message to the function of a subscription, named in full, and waits for the answer until the
// acknowledgement deadline.
func (p *pusher) push(ctx context.Context, s Subscription, name string, m *pb.PubsubMessage, attempt int) Response {
	begun := time.Now()
	a := p.post(ctx, s, name, m, attempt)
	a.Duration = time.Since(begun)
	return a
}

func (p *pusher) post(ctx context.Context, s Subscription, name string, m *pb.PubsubMessage, attempt int) Response {
	at := m.PublishTime.AsTime()
	body, err := json.Marshal(pushRequest{
		Message:      pushMessage{m.Data, m.Attributes, m.MessageId, m.MessageId, at, at, m.OrderingKey},
		Subscription: name, DeliveryAttempt: attempt,
	})
	if err != nil {
		return Response{Err: err.Error()}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.AckDeadline, errDeadline)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.endpoints[s.Function], bytes.NewReader(body))
	if err != nil {
		return Response{Err: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "APIs-Google; (+https://developers.google.com/webmasters/APIs-Google)")
	res, err := p.client.Do(req)
	if err != nil {
		return Response{Err: failureReason(ctx, err)}
	}
	defer res.Body.Close()
	said, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBody))
	if err != nil {
		return Response{Err: failureReason(ctx, err)}
	}
	return Response{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Body: said}
}

var errDeadline = errors.New("no answer within the acknowledgement deadline")

// failureReason is the cause of a push without an answer.
func failureReason(ctx context.Context, err error) string {
	if errors.Is(context.Cause(ctx), errDeadline) {
		return errDeadline.Error()
	}
	return err.Error()
}
