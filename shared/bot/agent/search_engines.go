package agent

import "strings"

// engine is a search engine whose crawler's address can be verified, and what its agents have in them.
type engine struct{ token, id string }

var searchEngines = []engine{
	{"googlebot", "googlebot"}, {"google-inspectiontool", "googlebot"}, {"storebot-google", "googlebot"},
	{"googleother", "googlebot"}, {"adsbot-google", "googlebot"}, {"mediapartners-google", "googlebot"},
	{"apis-google", "googlebot"},
	{"bingbot", "bingbot"}, {"bingpreview", "bingbot"}, {"adidxbot", "bingbot"}, {"msnbot", "bingbot"},
	{"duckduckbot", "duckduckbot"}, {"duckassistbot", "duckduckbot"},
	{"applebot", "applebot"},
	{"yandex.com/bots", "yandex"}, {"yandexbot", "yandex"},
	{"baiduspider", "baidu"},
	{"yahoo! slurp", "yahoo"},
	{"seznambot", "seznam"},
	{"petalbot", "petalbot"},
	{"qwantbot", "qwant"}, {"qwantify", "qwant"},
	{"sogou web spider", "sogou"}, {"yeti/", "naver"},
}

// claimedCrawler is the search engine that an agent in lower case claims to be.
func claimedCrawler(lower string) string {
	for _, e := range searchEngines {
		if strings.Contains(lower, e.token) {
			return e.id
		}
	}
	return ""
}
