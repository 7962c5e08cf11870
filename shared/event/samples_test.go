package event

import (
	"strings"
	"time"
)

var (
	at    = time.Date(2026, 4, 23, 13, 44, 22, 41_900_000, time.FixedZone("Kabul", 4*3600+1800))
	hashA = "sha256:" + strings.Repeat("9c8b", 16)
	hashB = "sha256:" + strings.Repeat("1a2b", 16)
)

const (
	gms = "gms_01KPWGB8XKFVZN6H3S0T5QYJ4D"
	srs = "srs_01KPWGB8XKFVZN6H3S0T5QYJ4E"
	tnt = "tnt_01KPWGB8XKFVZN6H3S0T5QYJ4F"
	ppt = "ppt_01KPWGB8XKFVZN6H3S0T5QYJ4G"
	wsh = "wsh_01KPWGB8XKFVZN6H3S0T5QYJ4H"
)

var (
	campaign = &Campaign{Source: "google", Medium: "cpc", Campaign: "spring-2026"}
	dates    = Dates{CheckIn: "2026-05-12", CheckOut: "2026-05-15"}
)

// samples has every payload with all its fields and, where some are optional, once more with few.
// The name is that of the golden file.
var samples = map[string]Payload{
	"session.started.v1": SessionStarted{gms, at, "ps-AF", "AFN", hashA, hashB, campaign, "browser-desktop"},
	"session.started.v1.few": SessionStarted{
		GuestSessionID: gms, CreatedAt: at, LocalePreference: "en", CurrencyPreference: "USD",
		FingerprintHash: hashA, IPHash: hashB, UserAgentClass: "other",
	},
	"session.ended.v1": SessionEnded{gms, at, ExplicitClear, at, 882},
	"search.executed.v1": SearchExecuted{
		GuestSessionID: gms, SearchSessionID: srs, QueryHash: hashA, Kind: "list",
		Geo:   Geo{Mode: "city", City: "Kabul", Region: "کابل", Country: "AF"},
		Dates: dates, Occupancy: Occupancy{Adults: 2, Rooms: 1},
		FilterKeys: FilterKeys([]string{"wifi", "halal-kitchen"}, "priceRange"), SortKey: "recommended",
		Page: &Page{Limit: 20}, ResultCount: 47, FromCache: true, CompositionMs: 47, Currency: "AFN", Locale: "ps-AF",
	},
	"search.executed.v1.few": SearchExecuted{
		GuestSessionID: gms, SearchSessionID: srs, QueryHash: hashA, Kind: "map", Geo: Geo{Mode: "bounding-box"},
		Dates: dates, Occupancy: Occupancy{Adults: 1, Rooms: 1}, SortKey: "distance-asc", Currency: "EUR", Locale: "en",
	},
	"click.recorded.v1": ClickRecorded{gms, "listing-card", tnt, ppt, srs, 3, 1, "recommended", at},
	"click.recorded.v1.few": ClickRecorded{
		GuestSessionID: gms, Kind: "wishlist-card", TenantID: tnt, PropertyID: ppt, OccurredAt: at,
	},
	"handoff.initiated.v1": HandoffInitiated{
		"bhd_01KPWGB8XKFVZN6H3S0T5QYJ4J", gms, tnt, "kabul-grand-hotel", ppt, dates,
		Occupancy{Adults: 2, Children: 2, Rooms: 1, ChildrenAges: []int{4, 9}}, "AFN", "ps-AF", campaign,
		at, at.Add(30 * time.Minute), "hmac-2026-04", hashA, hashB, "https://www.melmastoon.ghasi.io/search",
	},
	"handoff.initiated.v1.few": HandoffInitiated{
		HandoffID: "bhd_01KPWGB8XKFVZN6H3S0T5QYJ4J", GuestSessionID: gms, TenantID: tnt, TenantSlug: "noor",
		PropertyID: ppt, Dates: dates, Occupancy: Occupancy{Adults: 1, Rooms: 1}, Currency: "USD", Locale: "en",
		MintedAt: at, ExpiresAt: at.Add(30 * time.Minute), HMACKeyID: "hmac-2026-04", FingerprintHash: hashA, IPHash: hashB,
	},
	"locale.changed.v1":   LocaleChanged{gms, "en", "ps-AF", "user-explicit", at},
	"currency.changed.v1": CurrencyChanged{gms, "USD", "AFN", "user-explicit", at},
	"wishlist.added.v1":   WishlistAdded{wsh, gms, tnt, ppt, "detail", at, 5},
	"wishlist.removed.v1": WishlistRemoved{wsh, gms, tnt, ppt, at, 0},
	"bot_suspected.v1": BotSuspected{
		gms, 0.93, "bot",
		[]BotSignal{
			{"ua-pattern", 0.4, "headlessChrome"},
			{"cadence", 0.3, "12 reqs/2s"},
			{"fingerprint-collision", 0.23, "shared-with-94-sessions"},
		},
		hashB, hashA, hashA, at, "challenge",
	},
	"bot_suspected.v1.few": BotSuspected{
		Score: 0.5, Verdict: "suspect", Signals: []BotSignal{{Kind: "recaptcha", Weight: -0.5}},
		IPHash: hashB, UserAgentHash: hashA, FingerprintHash: hashA, EvaluatedAt: at, ActionTaken: "none",
	},
	"page.viewed.v1": PageViewed{
		"mpv_01KPWGB8XKFVZN6H3S0T5QYJ4K", gms, srs, "/hotels/" + ppt, tnt, ppt, at, "https://www.melmastoon.ghasi.io/search",
		hashB, hashA,
	},
	"page.viewed.v1.few": PageViewed{
		ID: "mpv_01KPWGB8XKFVZN6H3S0T5QYJ4K", GuestSessionID: gms, Path: "/", ViewedAt: at, UserAgentHash: hashB, FingerprintHash: hashA,
	},
	"funnel.step_recorded.v1": FunnelStepRecorded{
		"cfe_01KPWGB8XKFVZN6H3S0T5QYJ4M", gms, "list.scrolled-50pct", at, tnt, ppt, srs,
		map[string]any{"depthPercent": 50.0, "fromCache": true, "view": "list"},
	},
	"funnel.step_recorded.v1.few": FunnelStepRecorded{
		ID: "cfe_01KPWGB8XKFVZN6H3S0T5QYJ4M", GuestSessionID: gms, Step: "map.opened", OccurredAt: at,
	},
}

// sample is the event of one sample, the same in every run.
func sample(name string) Event {
	m := Meta{
		SessionID: gms, RequestID: "req_01KPWGB8XKFVZN6H3S0T5QYJ4N", Instance: "search-00001-abc",
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Now:         at, SamplingRate: 0.1,
	}
	if strings.HasSuffix(name, ".few") {
		m = Meta{Now: at}
	}
	e := New(m, samples[name])
	e.ID = "evt_01KPWGB8XKFVZN6H3S0T5QYJ4P"
	return e
}
