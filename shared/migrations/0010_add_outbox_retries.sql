-- +goose Up
-- Each rejected row has its own backoff and is finally parked until a person replays it. The relay
-- drains rows in shards, by the last character of the session id; the worker that holds a shard
-- drains it in order.
ALTER TABLE bff_consumer.outbox
    ADD COLUMN due_at    timestamptz,
    ADD COLUMN parked_at timestamptz;

CREATE INDEX ix_outbox_lane ON bff_consumer.outbox ((coalesce(right(headers ->> 'orderingKey', 1), '')), id)
    WHERE published_at IS NULL AND parked_at IS NULL;
CREATE INDEX ix_outbox_refused ON bff_consumer.outbox ((headers ->> 'orderingKey'), due_at)
    WHERE published_at IS NULL AND parked_at IS NULL AND attempts > 0;
