-- +goose Up
-- For the sweep of rows removed 30 days ago.
CREATE INDEX ix_wishlist_removed ON bff_consumer.wishlist_anonymous (removed_at)
    WHERE removed_at IS NOT NULL;
