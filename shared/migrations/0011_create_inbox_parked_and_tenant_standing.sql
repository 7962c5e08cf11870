-- +goose Up
-- Quarantined messages: they cannot be decoded, so a redelivery would not help. A person
-- inspects them.
CREATE TABLE bff_consumer.inbox_parked (
    subscription text NOT NULL,
    message_id   text NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT now(),
    reason       text NOT NULL,
    body         bytea NOT NULL,
    PRIMARY KEY (subscription, message_id)
);

CREATE INDEX ix_inbox_parked_received ON bff_consumer.inbox_parked (received_at);

-- The newest known status of a tenant, so that a late older event has no effect.
CREATE TABLE bff_consumer.tenant_standing (
    tenant_id  uuid PRIMARY KEY,
    suspended  boolean NOT NULL,
    changed_at timestamptz NOT NULL
);

INSERT INTO bff_consumer.tenant_standing (tenant_id, suspended, changed_at)
SELECT tenant_id, true, suspended_at
FROM bff_consumer.tenant_suspended_cache;
