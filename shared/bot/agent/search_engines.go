package agent

import "strings"

// engine is a token in the user agents of a search engine whose crawler addresses can be verified.
type engine struct{ token, id string }

// searchEngines lists the tokens, in lower case. The first match decides.
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

// claimedCrawler returns the search engine that a user agent in lower case names, or "".
func claimedCrawler(lower string) string {
	for _, e := range searchEngines {
		if strings.Contains(lower, e.token) {
			return e.id
		}
	}
	return ""
}
