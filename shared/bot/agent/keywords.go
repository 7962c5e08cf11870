package agent

// The rules of our own are words that programs have in their names and browsers do not, in lower case and written as
// word reads them. Words that are also in the names of apps, components or phones (security, media, test, link) are
// none: the list, an address or the form of the agent tell nearly all that those would.

// automationKeywords are the marks of drivers.
var automationKeywords = []string{
	"headless", "phantomjs", "slimerjs", "webdriver", "selenium", "puppeteer", "playwright", "cypress/", "casperjs",
	"nightmare/", "zombie.js", "htmlunit",
}

// toolKeywords are what crawlers, tools and HTTP libraries call themselves, or what they say that they do.
var toolKeywords = []string{
	// Those who collect.
	`bot\b`, `bots\b`, `robot`, `crawl`, `spider`, `scrap`, `slurp`, `archiver`, `harvest`, `indexer`, `grabber`,
	`extractor`, `fetch`, `sniffer`, `sitemap`, `\bfeed`, `\brss`, `quiterss`, `parser`,
	// Those who look at pages for others.
	`urlpreview`, `url-preview`, `linkpreview`, `webpreview`, `web preview`, `favicon`, `thumbnail`, `webthumb`, `screenshot`,
	`mshots`, `websnap`, `webscreen`, `webcapture`, `web-capture`, `googleweblight`, `googlemessages`,
	`macintosh; intel mac os x) word/`, `macintosh; intel mac os x) excel/`, `macintosh; intel mac os x) powerpoint/`,
	// Those who check.
	`validator`, `\bscanner`, `monitor`, `checker`, `linkcheck`, `link check`, `backlink`, `\bseo`, `analyzer`, `analyser`,
	`inspector`, `tester/`, `uptime`, `speedtest`, `loadtest`, `pagespeed`, `page speed`, `search console`, `lighthouse`,
	`synthetic`, `observatory`, `ptst`, `pingdom`, `gtmetrix`, `debugbear`, `dareboost`, `catchpoint`, `neustar wpm`,
	`gomezagent`, `wechatdevtools`, `site24x7`, `speedcurve`, `dynatrace`, `newrelic`,
	// HTTP libraries and runtimes.
	`\bcurl`, `libcurl`, `wget`, `libwww`, `python`, `\bperl`, `\bphp`, `ruby/`, `^java`, `go-http`, `okhttp`, `axios`,
	`^node\b`, `node-fetch`, `node.js`, `nodejs`, `urllib`, `httpclient`, `http-client`, `http client`, `http_`, `winhttp`, `guzzle`,
	`nutch`, `heritrix`, `larbin`, `httrack`, `wkhtmlto`, `simplepie`, `siege`, `jakarta`, `\blwp`, `web services client`,
	// Companies' own, by what none of their apps have.
	`mediapartners`, `google-`, `google web`, `appengine`, `facebookexternalhit`, `meta-external`, `daumoa`,
}

// ignoredPhrases is blanked before anything is matched: what people have in theirs that reads like a program.
var ignoredPhrases = [][]byte{
	[]byte("cubot"),     // phones
	[]byte("libwww-fm"), // in the text browser Lynx
	[]byte("bytedance"), // TikTok's own browser; the company's crawler is a spider
	// People who read a page through these.
	[]byte("(via docs.google.com/viewer)"), []byte("(via translate.google.com)"),
}
