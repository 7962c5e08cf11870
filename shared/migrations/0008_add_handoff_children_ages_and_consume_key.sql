-- +goose Up
ALTER TABLE bff_consumer.handoff_replay_log
    ADD COLUMN children_ages smallint[],
    ADD COLUMN consume_key   bytea;
