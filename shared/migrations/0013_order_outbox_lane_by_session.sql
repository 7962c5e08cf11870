-- +goose Up
-- Within a shard the index is ordered by session, then by id. The relay walks from session to
-- session, and a session blocked by a rejected row costs one index probe, however many rows wait
-- behind that row.
DROP INDEX bff_consumer.ix_outbox_lane;
CREATE INDEX ix_outbox_lane ON bff_consumer.outbox (
    (coalesce(right(headers ->> 'orderingKey', 1), '') COLLATE "C"),
    (coalesce(headers ->> 'orderingKey', '') COLLATE "C"),
    id
) WHERE published_at IS NULL AND parked_at IS NULL;
