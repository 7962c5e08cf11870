-- The whole schema after every migration, for reading. Only a test applies this file, to compare
-- the result with the result of the migrations. The uuid of a tenant or property holds the 128 bits
-- of its ULID. Guest sessions are stored in Redis; guest_session_id refers to them. No table has a
-- tenancy boundary, so there are no row policies.

CREATE SCHEMA bff_consumer;

-- A prefixed ULID: three letters, an underscore, 26 characters of Crockford's base32. Sorts by
-- time.
CREATE DOMAIN bff_consumer.ulid AS text COLLATE "C"
    CONSTRAINT ulid_check CHECK (VALUE ~ '^[a-z]{3}_[0-7][0-9A-HJKMNP-TV-Z]{25}$');

-- Outgoing events (transactional outbox). A row is written in the transaction of the change that
-- the event reports. The relay publishes rows in the order of id within a session. Published rows
-- are kept for 30 days, parked rows until a person handles them.
CREATE TABLE bff_consumer.outbox (
    id              bff_consumer.ulid PRIMARY KEY,       -- evt_; consumers deduplicate by this id
    topic           text NOT NULL,                       -- the subject, melmastoon.bff.consumer.….v1
    payload         jsonb NOT NULL,                      -- the message: {"envelope": …, "payload": …}
    headers         jsonb NOT NULL,                      -- the message attributes, including orderingKey
    retention_class text NOT NULL CHECK (retention_class IN ('operational', 'audit')),
    created_at      timestamptz NOT NULL DEFAULT now(),  -- start of the transaction, not the commit: unsafe as a cursor
    published_at    timestamptz,
    attempts        integer NOT NULL DEFAULT 0,
    last_error      text,                                -- of the last rejection
    due_at          timestamptz,                         -- time of the next attempt after a rejection
    parked_at       timestamptz                          -- given up until a person replays the row
);

CREATE INDEX ix_outbox_unpublished ON bff_consumer.outbox (created_at)
    WHERE published_at IS NULL;
CREATE INDEX ix_outbox_session ON bff_consumer.outbox ((headers ->> 'orderingKey'), id)
    WHERE published_at IS NULL;                          -- unpublished rows of one session
CREATE INDEX ix_outbox_lane ON bff_consumer.outbox (
    (coalesce(right(headers ->> 'orderingKey', 1), '') COLLATE "C"),
    (coalesce(headers ->> 'orderingKey', '') COLLATE "C"),
    id
) WHERE published_at IS NULL AND parked_at IS NULL;      -- rows of one shard, by session, in order
CREATE INDEX ix_outbox_refused ON bff_consumer.outbox ((headers ->> 'orderingKey'), due_at)
    WHERE published_at IS NULL AND parked_at IS NULL AND attempts > 0; -- sessions blocked by a rejected row, and until when

-- Incoming events, so that a second delivery has no effect. Rows are kept for 7 days.
CREATE TABLE bff_consumer.inbox (
    event_id     bff_consumer.ulid PRIMARY KEY,
    subject      text NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT now(),
    processed_at timestamptz,
    digest       bytea NOT NULL
);

CREATE INDEX ix_inbox_received ON bff_consumer.inbox (received_at);

-- Quarantined messages: they cannot be decoded, so a redelivery would not help. A person inspects
-- them. Rows are kept for 30 days.
CREATE TABLE bff_consumer.inbox_parked (
    subscription text NOT NULL,
    message_id   text NOT NULL,                          -- assigned by Pub/Sub
    received_at  timestamptz NOT NULL DEFAULT now(),
    reason       text NOT NULL,
    body         bytea NOT NULL,                         -- the raw message, at most 64 KiB
    PRIMARY KEY (subscription, message_id)
);

CREATE INDEX ix_inbox_parked_received ON bff_consumer.inbox_parked (received_at);

-- Ledger of minted handoffs and their use. Rows are kept for 24 hours; tokens live 30 minutes.
CREATE TABLE bff_consumer.handoff_replay_log (
    id               bff_consumer.ulid PRIMARY KEY,  -- bhd_
    guest_session_id text NOT NULL,                  -- gms_
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
    consumed_by      text,                           -- instance of the tenant's BFF
    children_ages    smallint[],                     -- in years; not part of the token
    consume_key      bytea,                          -- sha256 of the Idempotency-Key of the consume request
    CONSTRAINT chk_dates CHECK (check_out > check_in),
    CONSTRAINT chk_ttl CHECK (expires_at > minted_at AND expires_at - minted_at <= interval '30 minutes')
);

CREATE INDEX ix_handoff_consumed_at ON bff_consumer.handoff_replay_log (consumed_at) WHERE consumed = true;
CREATE INDEX ix_handoff_expires_at ON bff_consumer.handoff_replay_log (expires_at) WHERE consumed = false;
CREATE INDEX ix_handoff_session ON bff_consumer.handoff_replay_log (guest_session_id, minted_at DESC);

-- Wishlists (source of truth; Redis has a copy). A removal sets removed_at and a second addition
-- clears it, so the unique constraint includes removed rows. A sweep deletes removed rows after 30
-- days.
CREATE TABLE bff_consumer.wishlist_anonymous (
    id               bff_consumer.ulid PRIMARY KEY,  -- wsh_
    guest_session_id text NOT NULL,                  -- gms_
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
CREATE INDEX ix_wishlist_removed ON bff_consumer.wishlist_anonymous (removed_at)
    WHERE removed_at IS NOT NULL;

-- Verdicts suspect and bot of the bot detector. Insert-only; rows are kept for 7 days.
CREATE TABLE bff_consumer.bot_score_log (
    id               bff_consumer.ulid PRIMARY KEY,  -- bsc_
    guest_session_id text,                           -- null before the first response
    fingerprint_hash bytea NOT NULL,
    ip_hash          bytea NOT NULL,
    user_agent_hash  bytea NOT NULL,
    score            real NOT NULL CHECK (score >= 0 AND score <= 1),
    verdict          text NOT NULL CHECK (verdict IN ('human', 'suspect', 'bot')),
    signals          jsonb NOT NULL,
    action_taken     text NOT NULL CHECK (action_taken IN ('none', 'challenge', 'hard-block')),
    evaluated_at     timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX ix_botscore_evaluated ON bff_consumer.bot_score_log (evaluated_at);
CREATE INDEX ix_botscore_fingerprint ON bff_consumer.bot_score_log (fingerprint_hash, evaluated_at DESC);
CREATE INDEX ix_botscore_session ON bff_consumer.bot_score_log (guest_session_id)
    WHERE guest_session_id IS NOT NULL;

-- Stored responses for repeated requests, in case Redis loses its copy. Rows are kept for 24 hours.
CREATE TABLE bff_consumer.idempotency_keys (
    composite_key    text PRIMARY KEY,               -- sha256(guest_session_id|route|key)
    guest_session_id text NOT NULL,
    route            text NOT NULL,
    request_digest   bytea NOT NULL,                 -- sha256 of the canonical request body
    response_status  smallint NOT NULL,
    response_body    jsonb NOT NULL,
    created_at       timestamptz NOT NULL DEFAULT now(),
    expires_at       timestamptz NOT NULL
);

CREATE INDEX ix_idempotency_expires ON bff_consumer.idempotency_keys (expires_at);
CREATE INDEX ix_idempotency_session ON bff_consumer.idempotency_keys (guest_session_id);

-- Suspended tenants. Redis is restored from this table.
CREATE TABLE bff_consumer.tenant_suspended_cache (
    tenant_id    uuid PRIMARY KEY,
    suspended_at timestamptz NOT NULL,
    reason       text NOT NULL,
    refreshed_at timestamptz NOT NULL DEFAULT now()
);

-- The newest known status of a tenant, so that a late older event has no effect. A tenant without a
-- row was never suspended.
CREATE TABLE bff_consumer.tenant_standing (
    tenant_id  uuid PRIMARY KEY,
    suspended  boolean NOT NULL,
    changed_at timestamptz NOT NULL                      -- suspendedAt or reinstatedAt of the event
);

-- Consent decisions of guests. An opt-out must survive the loss of Redis: no event of a session is
-- written to the outbox while telemetry is false, and never again after the session was cleared. A
-- guest without a decision has no row. Exception: if the browser opts out (DNT or Sec-GPC) and
-- other tables have rows of the session, the opt-out is recorded here. A session id is valid for
-- 365 days; after that its row has no meaning.
CREATE TABLE bff_consumer.session_choice (
    guest_session_id text PRIMARY KEY,               -- gms_
    telemetry        boolean NOT NULL,
    marketing        boolean NOT NULL,
    decided_at       timestamptz NOT NULL,
    cleared_at       timestamptz                     -- set by /session/clear; the id is never used again
);
