-- +goose Up
CREATE TABLE bff_consumer.handoff_replay_log (
    id               bff_consumer.ulid PRIMARY KEY,
    guest_session_id text NOT NULL,
    tenant_id        uuid NOT NULL,
    property_id      uuid NOT NULL,
    check_in         date NOT NULL,
    check_out        date NOT NULL,
    adults           smallint NOT NULL,
    children         smallint NOT NULL,
    rooms            smallint NOT NULL,
    currency         char(3) NOT NULL,
    locale           text NOT NULL,
    source_campaign  jsonb,
    hmac_key_id      text NOT NULL,
    fingerprint_hash bytea NOT NULL,
    ip_hash          bytea NOT NULL,
    minted_at        timestamptz NOT NULL,
    expires_at       timestamptz NOT NULL,
    consumed         boolean NOT NULL DEFAULT false,
    consumed_at      timestamptz,
    consumed_by      text,
    CONSTRAINT chk_dates CHECK (check_out > check_in),
    CONSTRAINT chk_ttl CHECK (expires_at > minted_at AND expires_at - minted_at <= interval '30 minutes')
);

CREATE INDEX ix_handoff_consumed_at ON bff_consumer.handoff_replay_log (consumed_at) WHERE consumed = true;
CREATE INDEX ix_handoff_expires_at ON bff_consumer.handoff_replay_log (expires_at) WHERE consumed = false;
CREATE INDEX ix_handoff_session ON bff_consumer.handoff_replay_log (guest_session_id, minted_at DESC);
