-- +goose Up
CREATE TABLE bff_consumer.tenant_suspended_cache (
    tenant_id    uuid PRIMARY KEY,
    suspended_at timestamptz NOT NULL,
    reason       text NOT NULL,
    refreshed_at timestamptz NOT NULL DEFAULT now()
);
