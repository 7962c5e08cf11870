package event

import (
	"strings"
	"time"
)

var (
	sampleTime = time.Date(2026, 4, 23, 13, 44, 22, 41_900_000, time.FixedZone("Kabul", 4*3600+1800))
	hashA      = "sha256:" + strings.Repeat("9c8b", 16)
	hashB      = "sha256:" + strings.Repeat("1a2b", 16)
)

const (
	sampleSessionID  = "gms_01KPWGB8XKFVZN6H3S0T5QYJ4D"
	sampleSearchID   = "srs_01KPWGB8XKFVZN6H3S0T5QYJ4E"
	sampleTenantID   = "tnt_01KPWGB8XKFVZN6H3S0T5QYJ4F"
	samplePropertyID = "ppt_01KPWGB8XKFVZN6H3S0T5QYJ4G"
	sampleWishlistID = "wsh_01KPWGB8XKFVZN6H3S0T5QYJ4H"
)

var (
	sampleCampaign = &Campaign{Source: "google", Medium: "cpc", Campaign: "spring-2026"}
	sampleDates    = Dates{CheckIn: "2026-05-12", CheckOut: "2026-05-15"}
)

// samples has every payload with all its fields and, where some are optional, once more with few.
// The name is that of the golden file.
var samples = map[string]Payload{
	"session.started.v1": SessionStarted{sampleSessionID, sampleTime, "ps-AF", "AFN", hashA, hashB, sampleCampaign, "browser-desktop"},
	"session.started.v1.few": SessionStarted{
		GuestSessionID: sampleSessionID, CreatedAt: sampleTime, LocalePreference: "en", CurrencyPreference: "USD",
		FingerprintHash: hashA, IPHash: hashB, UserAgentClass: "other",
	},
	"session.ended.v1": SessionEnded{sampleSessionID, sampleTime, ExplicitClear, sampleTime, 882},
	"search.executed.v1": SearchExecuted{
		GuestSessionID: sampleSessionID, SearchSessionID: sampleSearchID, QueryHash: hashA, Kind: "list",
		Geo:   Geo{Mode: "city", City: "Kabul", Region: "کابل", Country: "AF"},
		Dates: sampleDates, Occupancy: Occupancy{Adults: 2, Rooms: 1},
		FilterKeys: FilterKeys([]string{"wifi", "halal-kitchen"}, "priceRange"), SortKey: "recommended",
		Page: &Page{Limit: 20}, ResultCount: 47, FromCache: true, CompositionMs: 47, Currency: "AFN", Locale: "ps-AF",
	},
	"search.executed.v1.few": SearchExecuted{
		GuestSessionID: sampleSessionID, SearchSessionID: sampleSearchID, QueryHash: hashA, Kind: "map", Geo: Geo{Mode: "bounding-box"},
		Dates: sampleDates, Occupancy: Occupancy{Adults: 1, Rooms: 1}, SortKey: "distance-asc", Currency: "EUR", Locale: "en",
	},
	"click.recorded.v1": ClickRecorded{sampleSessionID, "listing-card", sampleTenantID, samplePropertyID, sampleSearchID, 3, 1, "recommended", sampleTime},
	"click.recorded.v1.few": ClickRecorded{
		GuestSessionID: sampleSessionID, Kind: "wishlist-card", TenantID: sampleTenantID, PropertyID: samplePropertyID, OccurredAt: sampleTime,
	},
	"handoff.initiated.v1": HandoffInitiated{
		"bhd_01KPWGB8XKFVZN6H3S0T5QYJ4J", sampleSessionID, sampleTenantID, "kabul-grand-hotel", samplePropertyID, sampleDates,
		Occupancy{Adults: 2, Children: 2, Rooms: 1, ChildrenAges: []int{4, 9}}, "AFN", "ps-AF", sampleCampaign,
		sampleTime, sampleTime.Add(30 * time.Minute), "hmac-2026-04", hashA, hashB, "https://www.melmastoon.ghasi.io/search",
	},
	"handoff.initiated.v1.few": HandoffInitiated{
		HandoffID: "bhd_01KPWGB8XKFVZN6H3S0T5QYJ4J", GuestSessionID: sampleSessionID, TenantID: sampleTenantID, TenantSlug: "noor",
		PropertyID: samplePropertyID, Dates: sampleDates, Occupancy: Occupancy{Adults: 1, Rooms: 1}, Currency: "USD", Locale: "en",
		MintedAt: sampleTime, ExpiresAt: sampleTime.Add(30 * time.Minute), HMACKeyID: "hmac-2026-04", FingerprintHash: hashA, IPHash: hashB,
	},
	"locale.changed.v1":   LocaleChanged{sampleSessionID, "en", "ps-AF", "user-explicit", sampleTime},
	"currency.changed.v1": CurrencyChanged{sampleSessionID, "USD", "AFN", "user-explicit", sampleTime},
	"wishlist.added.v1":   WishlistAdded{sampleWishlistID, sampleSessionID, sampleTenantID, samplePropertyID, "detail", sampleTime, 5},
	"wishlist.removed.v1": WishlistRemoved{sampleWishlistID, sampleSessionID, sampleTenantID, samplePropertyID, sampleTime, 0},
	"bot_suspected.v1": BotSuspected{
		sampleSessionID, 0.93, "bot",
		[]BotSignal{
			{"ua-pattern", 0.4, "headlessChrome"},
			{"cadence", 0.3, "12 reqs/2s"},
			{"fingerprint-collision", 0.23, "shared-with-94-sessions"},
		},
		hashB, hashA, hashA, sampleTime, "challenge",
	},
	"bot_suspected.v1.few": BotSuspected{
		Score: 0.5, Verdict: "suspect", Signals: []BotSignal{{Kind: "recaptcha", Weight: -0.5}},
		IPHash: hashB, UserAgentHash: hashA, FingerprintHash: hashA, EvaluatedAt: sampleTime, ActionTaken: "none",
	},
	"page.viewed.v1": PageViewed{
		"mpv_01KPWGB8XKFVZN6H3S0T5QYJ4K", sampleSessionID, sampleSearchID, "/hotels/" + samplePropertyID, sampleTenantID, samplePropertyID, sampleTime, "https://www.melmastoon.ghasi.io/search",
		hashB, hashA,
	},
	"page.viewed.v1.few": PageViewed{
		ID: "mpv_01KPWGB8XKFVZN6H3S0T5QYJ4K", GuestSessionID: sampleSessionID, Path: "/", ViewedAt: sampleTime, UserAgentHash: hashB, FingerprintHash: hashA,
	},
	"funnel.step_recorded.v1": FunnelStepRecorded{
		"cfe_01KPWGB8XKFVZN6H3S0T5QYJ4M", sampleSessionID, "list.scrolled-50pct", sampleTime, sampleTenantID, samplePropertyID, sampleSearchID,
		map[string]any{"depthPercent": 50.0, "fromCache": true, "view": "list"},
	},
	"funnel.step_recorded.v1.few": FunnelStepRecorded{
		ID: "cfe_01KPWGB8XKFVZN6H3S0T5QYJ4M", GuestSessionID: sampleSessionID, Step: "map.opened", OccurredAt: sampleTime,
	},
}

// sample is the event of one sample, the same in every run.
func sample(name string) Event {
	m := Meta{
		SessionID: sampleSessionID, RequestID: "req_01KPWGB8XKFVZN6H3S0T5QYJ4N", Instance: "search-00001-abc",
		Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		Now:         sampleTime, SamplingRate: 0.1,
	}
	if strings.HasSuffix(name, ".few") {
		m = Meta{Now: sampleTime}
	}
	e := New(m, samples[name])
	e.ID = "evt_01KPWGB8XKFVZN6H3S0T5QYJ4P"
	return e
}
