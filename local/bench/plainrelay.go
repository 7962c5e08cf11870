package bench

import (
	"context"
	"fmt"
	"sync"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
)

// plainRelay is what one writes first: it takes the next 500 rows that nobody has, sends them and marks them. It keeps
// no order, knows no refusals, asks no guest, and sends 500 rows twice when it is killed.
type plainRelay struct {
	db     *pgxpool.Pool
	broker *pubsub.TopicAdminClient
}

const (
	plainBatch   = 500
	plainWorkers = 4
	plainSending = 64
)

func newPlain(ctx context.Context, url string) (*plainRelay, error) {
	broker, err := pubsub.NewTopicAdminClient(ctx)
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: plainWorkers + 2})
	return &plainRelay{db, broker}, err
}

func (p *plainRelay) close() {
	p.db.Close()
	p.broker.Close()
}

// drain sends until nothing is left; keyed sends one request per topic and ordering key.
func (p *plainRelay) drain(ctx context.Context, keyed bool) error {
	var all sync.WaitGroup
	failures := make(chan error, plainWorkers)
	for range plainWorkers {
		all.Go(func() {
			for {
				n, err := p.batch(ctx, keyed)
				if err != nil {
					failures <- err
				}
				if n == 0 || err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	close(failures)
	return <-failures
}

type plainRow struct{ ID, Topic, Key, Payload, Headers string }

func (p *plainRelay) batch(ctx context.Context, keyed bool) (n int, err error) {
	err = pgx.BeginFunc(ctx, p.db, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `
			SELECT id::text, topic, coalesce(headers ->> 'orderingKey', ''), payload::text, headers::text
			FROM bff_consumer.outbox
			WHERE published_at IS NULL
			ORDER BY created_at
			LIMIT $1
			FOR UPDATE SKIP LOCKED`, plainBatch)
		due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[plainRow])
		if err != nil || len(due) == 0 {
			return err
		}
		n = len(due)
		requests := map[[2]string]*pubsubpb.PublishRequest{}
		ids := make([]string, n)
		for i, row := range due {
			ids[i] = row.ID
			key := ""
			if keyed {
				key = row.Key
			}
			r := requests[[2]string{row.Topic, key}]
			if r == nil {
				r = &pubsubpb.PublishRequest{Topic: "projects/bench/topics/" + row.Topic}
				requests[[2]string{row.Topic, key}] = r
			}
			var attributes map[string]string
			if err := json.Unmarshal([]byte(row.Headers), &attributes); err != nil {
				return err
			}
			r.Messages = append(r.Messages, &pubsubpb.PubsubMessage{Data: []byte(row.Payload), Attributes: attributes, OrderingKey: key})
		}
		if err := p.publish(ctx, requests); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE bff_consumer.outbox SET published_at = now() WHERE id = ANY($1)`, ids)
		return err
	})
	if err != nil {
		return n, fmt.Errorf("bench: plain relay: %w", err)
	}
	return n, nil
}

func (p *plainRelay) publish(ctx context.Context, requests map[[2]string]*pubsubpb.PublishRequest) error {
	var all sync.WaitGroup
	failures := make(chan error, len(requests))
	tokens := make(chan struct{}, plainSending/plainWorkers)
	for _, r := range requests {
		tokens <- struct{}{}
		all.Go(func() {
			defer func() { <-tokens }()
			if _, err := p.broker.Publish(ctx, r); err != nil {
				failures <- err
			}
		})
	}
	all.Wait()
	close(failures)
	return <-failures
}
