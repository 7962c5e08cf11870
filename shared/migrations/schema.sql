-- The whole schema after every migration, for reading. Nothing applies it but a test, which compares what it makes
-- with what the migrations make. Tenants and properties are the 128 bits of their ULID as uuid; guests' sessions are
-- references into Redis. No table has a tenancy boundary, so there are no row policies.

CREATE SCHEMA bff_consumer;

-- A prefixed ULID: three letters, an underscore, 26 characters of Crockford's alphabet. It sorts by time.
CREATE DOMAIN bff_consumer.ulid AS text COLLATE "C"
    CONSTRAINT ulid_check CHECK (VALUE ~ '^[a-z]{3}_[0-7][0-9A-HJKMNP-TV-Z]{25}$');

-- What is to be told to others. Rows are written in the transaction that makes them true and sent by the relay, in the
-- order of id within one session. Published rows live 30 days; parked ones until somebody looks.
CREATE TABLE bff_consumer.outbox (
    id              bff_consumer.ulid PRIMARY KEY,       -- evt_, what consumers deduplicate by
    topic           text NOT NULL,                       -- the subject, melmastoon.bff.consumer.….v1
    payload         jsonb NOT NULL,                      -- the message: {"envelope": …, "payload": …}
    headers         jsonb NOT NULL,                      -- its attributes, orderingKey among them
    retention_class text NOT NULL CHECK (retention_class IN ('operational', 'audit')),
    created_at      timestamptz NOT NULL DEFAULT now(),  -- start of the transaction, not its commit: no cursor
    published_at    timestamptz,
    attempts        integer NOT NULL DEFAULT 0,
    last_error      text,                                -- of the last refusal
    due_at          timestamptz,                         -- of the next attempt, after a refusal
    parked_at       timestamptz                          -- given up, until somebody replays it
);

CREATE INDEX ix_outbox_unpublished ON bff_consumer.outbox (created_at)
    WHERE published_at IS NULL;
CREATE INDEX ix_outbox_session ON bff_consumer.outbox ((headers ->> 'orderingKey'), id)
    WHERE published_at IS NULL;                          -- what one session has not told yet
CREATE INDEX ix_outbox_lane ON bff_consumer.outbox (
    (coalesce(right(headers ->> 'orderingKey', 1), '') COLLATE "C"),
    (coalesce(headers ->> 'orderingKey', '') COLLATE "C"),
    id
) WHERE published_at IS NULL AND parked_at IS NULL;      -- what one lane has to send, session by session, each in order
CREATE INDEX ix_outbox_refused ON bff_consumer.outbox ((headers ->> 'orderingKey'), due_at)
    WHERE published_at IS NULL AND parked_at IS NULL AND attempts > 0; -- who is held back, and until when

-- What others told us, so that the second telling has no effect. Rows live 7 days.
CREATE TABLE bff_consumer.inbox (
    event_id     bff_consumer.ulid PRIMARY KEY,
    subject      text NOT NULL,
    received_at  timestamptz NOT NULL DEFAULT now(),
    processed_at timestamptz,
    digest       bytea NOT NULL
);

CREATE INDEX ix_inbox_received ON bff_consumer.inbox (received_at);

-- What arrived and could not be read, for a person to look at: redelivering it would change nothing. Rows live 30 days.
CREATE TABLE bff_consumer.inbox_parked (
    subscription text NOT NULL,
    message_id   text NOT NULL,                          -- the broker's
    received_at  timestamptz NOT NULL DEFAULT now(),
    reason       text NOT NULL,
    body         bytea NOT NULL,                         -- as it arrived, at most 64 KiB of it
    PRIMARY KEY (subscription, message_id)
);

CREATE INDEX ix_inbox_parked_received ON bff_consumer.inbox_parked (received_at);

-- Handoffs minted, and whether they were used. Rows live 24 hours, tokens 30 minutes.
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
    children_ages    smallint[],                     -- years; not in the token
    consume_key      bytea,                          -- sha256 of the Idempotency-Key it was consumed with
    CONSTRAINT chk_dates CHECK (check_out > check_in),
    CONSTRAINT chk_ttl CHECK (expires_at > minted_at AND expires_at - minted_at <= interval '30 minutes')
);

CREATE INDEX ix_handoff_consumed_at ON bff_consumer.handoff_replay_log (consumed_at) WHERE consumed = true;
CREATE INDEX ix_handoff_expires_at ON bff_consumer.handoff_replay_log (expires_at) WHERE consumed = false;
CREATE INDEX ix_handoff_session ON bff_consumer.handoff_replay_log (guest_session_id, minted_at DESC);

-- The record of every wishlist; Redis has the copy. Removing sets removed_at, adding again revives the row, so the
-- unique constraint counts removed rows too. They are pruned after 30 days.
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

-- Verdicts of the bot detector, suspect and bot. Insert-only; rows live 7 days.
CREATE TABLE bff_consumer.bot_score_log (
    id               bff_consumer.ulid PRIMARY KEY,  -- bsc_
    guest_session_id text,                           -- none before the first answer
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

-- Answers already given to a repeated request, should Redis forget them. Rows live 24 hours.
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

-- Tenants suspended now: what Redis is refilled from.
CREATE TABLE bff_consumer.tenant_suspended_cache (
    tenant_id    uuid PRIMARY KEY,
    suspended_at timestamptz NOT NULL,
    reason       text NOT NULL,
    refreshed_at timestamptz NOT NULL DEFAULT now()
);

-- The newest that is known of a tenant, so that an older event which comes late changes nothing. A tenant without a row
-- was never suspended.
CREATE TABLE bff_consumer.tenant_standing (
    tenant_id  uuid PRIMARY KEY,
    suspended  boolean NOT NULL,
    changed_at timestamptz NOT NULL                      -- suspendedAt or reinstatedAt of the event
);

-- What guests decided about their data, because a refusal must outlive Redis: no event of a session is written to the
-- outbox while telemetry is false, nor ever again once the session was cleared. A guest who never decided has no row.
-- An id is genuine for 365 days; after them its row means nothing.
CREATE TABLE bff_consumer.session_choice (
    guest_session_id text PRIMARY KEY,               -- gms_
    telemetry        boolean NOT NULL,
    marketing        boolean NOT NULL,
    decided_at       timestamptz NOT NULL,
    cleared_at       timestamptz                     -- set by /session/clear: the id is never used again
);
