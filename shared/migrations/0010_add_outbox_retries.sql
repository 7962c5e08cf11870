-- +goose Up
-- A refused row backs off by itself and, in the end, waits for a person. Rows are drained in lanes, by the last character of
-- their session's id: whoever has a lane drains it in order.
ALTER TABLE bff_consumer.outbox
    ADD COLUMN due_at    timestamptz,
    ADD COLUMN parked_at timestamptz;

CREATE INDEX ix_outbox_lane ON bff_consumer.outbox ((coalesce(right(headers ->> 'orderingKey', 1), '')), id)
    WHERE published_at IS NULL AND parked_at IS NULL;
CREATE INDEX ix_outbox_refused ON bff_consumer.outbox ((headers ->> 'orderingKey'), due_at)
    WHERE published_at IS NULL AND parked_at IS NULL AND attempts > 0;
