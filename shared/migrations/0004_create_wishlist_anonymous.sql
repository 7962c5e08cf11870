-- +goose Up
CREATE TABLE bff_consumer.wishlist_anonymous (
    id               bff_consumer.ulid PRIMARY KEY,
    guest_session_id text NOT NULL,
    tenant_id        uuid NOT NULL,
    property_id      uuid NOT NULL,
    source           text NOT NULL CHECK (source IN ('detail', 'list', 'map', 'recently-viewed')),
    note             text CHECK (char_length(note) <= 280),
    added_at         timestamptz NOT NULL DEFAULT now(),
    removed_at       timestamptz,
    CONSTRAINT uq_wishlist_session_property UNIQUE (guest_session_id, property_id)
);

CREATE INDEX ix_wishlist_session ON bff_consumer.wishlist_anonymous (guest_session_id);
CREATE INDEX ix_wishlist_tenant_property ON bff_consumer.wishlist_anonymous (tenant_id, property_id);
