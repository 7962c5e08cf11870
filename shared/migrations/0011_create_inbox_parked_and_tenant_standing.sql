-- +goose Up
-- What arrived and could not be read, for a person to look at: redelivering it would change nothing.
CREATE TABLE bff_consumer.inbox_parked (
    subscription text NOT NULL,
    message_id   text NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT now(),
    reason       text NOT NULL,
    body         bytea NOT NULL,
    PRIMARY KEY (subscription, message_id)
);

CREATE INDEX ix_inbox_parked_received ON bff_consumer.inbox_parked (received_at);

-- The newest that is known of a tenant, so that an older event which comes late changes nothing.
CREATE TABLE bff_consumer.tenant_standing (
    tenant_id  uuid PRIMARY KEY,
    suspended  boolean NOT NULL,
    changed_at timestamptz NOT NULL
);

INSERT INTO bff_consumer.tenant_standing (tenant_id, suspended, changed_at)
SELECT tenant_id, true, suspended_at
FROM bff_consumer.tenant_suspended_cache;
