-- +goose Up
CREATE SCHEMA bff_consumer;

-- A prefixed ULID: "evt_01H8YN7QV4D8KZ4F8Y5CK4MV3D". Collation C compares bytes, so ids sort by
-- their time in every database locale. The first digit is at most 7, because a ULID has 128 bits.
CREATE DOMAIN bff_consumer.ulid AS text COLLATE "C"
    CONSTRAINT ulid_check CHECK (VALUE ~ '^[a-z]{3}_[0-7][0-9A-HJKMNP-TV-Z]{25}$');
