-- +goose Up
-- Within a lane by session, and then by id: the relay goes from session to session, and one that is held back costs it a
-- single look, however many rows wait behind the one that was refused.
DROP INDEX bff_consumer.ix_outbox_lane;
CREATE INDEX ix_outbox_lane ON bff_consumer.outbox (
    (coalesce(right(headers ->> 'orderingKey', 1), '') COLLATE "C"),
    (coalesce(headers ->> 'orderingKey', '') COLLATE "C"),
    id
) WHERE published_at IS NULL AND parked_at IS NULL;
