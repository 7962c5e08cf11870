package sweep

import "time"

// seed is an INSERT of rows into the table of a rule.
type seed struct {
	rule string
	sql  string // $1 is the number of rows, $2 their time; {id} is a ULID of that time
}

// ulidSQL creates a function for the time part of a ULID: ten characters in Crockford's alphabet.
const ulidSQL = `
	CREATE FUNCTION pg_temp.ulid(at timestamptz) RETURNS text LANGUAGE sql IMMUTABLE AS $$
		SELECT string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', ((floor(extract(epoch FROM at) * 1000)::bigint >> (5 * i)) & 31)::int + 1, 1), '' ORDER BY i DESC)
		FROM generate_series(0, 9) AS i
	$$`

var seeds = []seed{
	{"SweepOutbox", `
		INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class, created_at, published_at)
		SELECT 'evt_' || {id}, 'melmastoon.bff.consumer.page.viewed.v1', '{"envelope":{},"payload":{}}', '{"orderingKey":"gms_x"}', 'operational', $2, $2
		FROM generate_series(1, $1) AS n`},
	{"SweepInbox", `
		INSERT INTO bff_consumer.inbox (event_id, subject, received_at, processed_at, digest)
		SELECT 'evt_' || {id}, 's', $2, $2, '\x00' FROM generate_series(1, $1) AS n`},
	{"SweepParked", `
		INSERT INTO bff_consumer.inbox_parked (subscription, message_id, received_at, reason, body)
		SELECT 's', {id}, $2, 'r', '\x00' FROM generate_series(1, $1) AS n`},
	{"SweepHandoffs", `
		INSERT INTO bff_consumer.handoff_replay_log (id, guest_session_id, tenant_id, property_id, check_in, check_out, adults, children, rooms,
			currency, locale, hmac_key_id, fingerprint_hash, ip_hash, minted_at, expires_at)
		SELECT 'bhd_' || {id}, 'gms_x', gen_random_uuid(), gen_random_uuid(), '2026-12-01', '2026-12-02', 2, 0, 1,
			'AFN', 'en', 'hmac-2026-11', '\x00', '\x00', $2, $2::timestamptz + interval '30 minutes' FROM generate_series(1, $1) AS n`},
	{"SweepWishlist", `
		INSERT INTO bff_consumer.wishlist_anonymous (id, guest_session_id, tenant_id, property_id, source, added_at, removed_at)
		SELECT 'wsh_' || {id}, 'gms_x', gen_random_uuid(), gen_random_uuid(), 'list', $2, $2 FROM generate_series(1, $1) AS n`},
	{"SweepBotScores", `
		INSERT INTO bff_consumer.bot_score_log (id, fingerprint_hash, ip_hash, user_agent_hash, score, verdict, signals, action_taken, evaluated_at)
		SELECT 'bsc_' || {id}, '\x00', '\x00', '\x00', 0.9, 'bot', '[]', 'none', $2 FROM generate_series(1, $1) AS n`},
	{"SweepIdempotency", `
		INSERT INTO bff_consumer.idempotency_keys (composite_key, guest_session_id, route, request_digest, response_status, response_body, expires_at)
		SELECT {id}, 'gms_x', 'r', '\x00', 201, '{}', $2 FROM generate_series(1, $1) AS n`},
	{"SweepChoices", `
		INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at)
		SELECT 'gms_' || {id}, false, false, $2 FROM generate_series(1, $1) AS n`},
}

// seedTime returns a time a minute before or after the end of retention.
func (r retention) seedTime(now time.Time, expired bool) time.Time {
	if expired {
		return now.Add(-r.period - time.Minute)
	}
	return now.Add(-r.period + time.Minute)
}

// retention returns the rule of the seed.
func (s seed) retention() retention {
	for _, r := range retentions {
		if r.name == s.rule {
			return r
		}
	}
	panic("no rule " + s.rule)
}
