package pubsub

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Response is a function's response to one push.
type Response struct {
	Status      int    // 0 without a response
	ContentType string // media type of Body
	Body        []byte // truncated to 64 KiB
	Err         string // reason for a missing response; "" with a response
	Duration    time.Duration
}

// Acknowledges reports whether Pub/Sub takes the response as an acknowledgement: status 102, 200,
// 201, 202 or 204.
func (r Response) Acknowledges() bool {
	switch r.Status {
	case http.StatusProcessing, http.StatusOK, http.StatusCreated, http.StatusAccepted, http.StatusNoContent:
		return true
	}
	return false
}

// Report returns the body as a jsontext.Value if its media type is JSON and its text is valid JSON,
// else as a string. It returns Err for a push without a response and nil for an empty body.
func (r Response) Report() any {
	switch media, _, _ := mime.ParseMediaType(r.ContentType); {
	case r.Err != "":
		return r.Err
	case len(r.Body) == 0:
		return nil
	case (media == "application/json" || strings.HasSuffix(media, "+json")) && jsontext.Value(r.Body).IsValid():
		return jsontext.Value(r.Body)
	default:
		return string(r.Body)
	}
}

const maxResponseBody = 64 << 10

// pushRequest is the body of a push. Pub/Sub writes some members under two names.
type pushRequest struct {
	Message         pushMessage `json:"message"`
	Subscription    string      `json:"subscription"`
	DeliveryAttempt int         `json:"deliveryAttempt"`
}

type pushMessage struct {
	Data         []byte            `json:"data,omitempty"` // base64 on the wire
	Attributes   map[string]string `json:"attributes,omitempty"`
	MessageID    string            `json:"messageId"`
	MessageID2   string            `json:"message_id"`
	PublishTime  time.Time         `json:"publishTime"`
	PublishTime2 time.Time         `json:"publish_time"`
	OrderingKey  string            `json:"orderingKey,omitempty"`
}

// pusher posts messages to functions. It does not follow redirects.
type pusher struct {
	client    *http.Client
	endpoints map[string]string // URL by function
}

func newPusher(endpoints map[string]string) *pusher {
	return &pusher{
		client: &http.Client{
			Transport:     &http.Transport{MaxIdleConnsPerHost: maxConcurrentPushes, DisableCompression: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		endpoints: endpoints,
	}
}

// push sends a message to the function of a subscription and waits for the response: at most
// s.AckDeadline. name is the full resource name of the subscription.
func (p *pusher) push(ctx context.Context, s Subscription, name string, m *pb.PubsubMessage, attempt int) Response {
	begun := time.Now()
	r := p.post(ctx, s, name, m, attempt)
	r.Duration = time.Since(begun)
	return r
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
	text, err := io.ReadAll(io.LimitReader(res.Body, maxResponseBody))
	if err != nil {
		return Response{Err: failureReason(ctx, err)}
	}
	return Response{Status: res.StatusCode, ContentType: res.Header.Get("Content-Type"), Body: text}
}

var errDeadline = errors.New("no response within the acknowledgement deadline")

// failureReason returns the reason for a push without a response.
func failureReason(ctx context.Context, err error) string {
	if errors.Is(context.Cause(ctx), errDeadline) {
		return errDeadline.Error()
	}
	return err.Error()
}
