-- +goose Up
CREATE SCHEMA bff_consumer;

-- A prefixed ULID: "evt_01H8YN7QV4D8KZ4F8Y5CK4MV3D". Collation C compares bytes, so that ids sort by the time in them
-- whatever the database's locale is. The first digit is at most 7, else the 128 bits would overflow.
CREATE DOMAIN bff_consumer.ulid AS text COLLATE "C"
    CONSTRAINT ulid_check CHECK (VALUE ~ '^[a-z]{3}_[0-7][0-9A-HJKMNP-TV-Z]{25}$');
