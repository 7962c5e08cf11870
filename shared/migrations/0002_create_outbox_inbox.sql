-- +goose Up
CREATE TABLE bff_consumer.outbox (
    id              bff_consumer.ulid PRIMARY KEY,
    topic           text NOT NULL,
    payload         jsonb NOT NULL,
    headers         jsonb NOT NULL,
    retention_class text NOT NULL CHECK (retention_class IN ('operational', 'audit')),
    created_at      timestamptz NOT NULL DEFAULT now(),
    published_at    timestamptz,
    attempts        integer NOT NULL DEFAULT 0,
    last_error      text
);

CREATE INDEX ix_outbox_unpublished ON bff_consumer.outbox (created_at)
    WHERE published_at IS NULL;

CREATE TABLE bff_consumer.inbox (
    event_id     bff_consumer.ulid PRIMARY KEY,
    subject      text NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT now(),
    processed_at timestamptz,
    digest       bytea NOT NULL
);

CREATE INDEX ix_inbox_received ON bff_consumer.inbox (received_at);
