-- +goose Up
CREATE TABLE bff_consumer.session_choice (
    guest_session_id text PRIMARY KEY,
    telemetry        boolean NOT NULL,
    marketing        boolean NOT NULL,
    decided_at       timestamptz NOT NULL,
    cleared_at       timestamptz
);

CREATE INDEX ix_outbox_session ON bff_consumer.outbox ((headers ->> 'orderingKey'), id)
    WHERE published_at IS NULL;
CREATE INDEX ix_idempotency_session ON bff_consumer.idempotency_keys (guest_session_id);
CREATE INDEX ix_botscore_session ON bff_consumer.bot_score_log (guest_session_id)
    WHERE guest_session_id IS NOT NULL;
