package agent

// Keywords complement the crawler list: words in lower case, in the syntax of parseKeyword, that
// occur in the names of programs and not in browsers. Words that also occur in the names of apps,
// components or phones (security, media, test, link) are left out. The list, a contact or the form
// of the user agent detects nearly all clients that such words would detect.

// automationKeywords are the marks of automation drivers.
var automationKeywords = []string{
	"headless", "phantomjs", "slimerjs", "webdriver", "selenium", "puppeteer", "playwright", "cypress/", "casperjs",
	"nightmare/", "zombie.js", "htmlunit",
}

// toolKeywords are names and activities of crawlers, tools and HTTP libraries.
var toolKeywords = []string{
	// Collectors.
	`bot\b`, `bots\b`, `robot`, `crawl`, `spider`, `scrap`, `slurp`, `archiver`, `harvest`, `indexer`, `grabber`,
	`extractor`, `fetch`, `sniffer`, `sitemap`, `\bfeed`, `\brss`, `quiterss`, `parser`,
	// Previews and renderers.
	`urlpreview`, `url-preview`, `linkpreview`, `webpreview`, `web preview`, `favicon`, `thumbnail`, `webthumb`, `screenshot`,
	`mshots`, `websnap`, `webscreen`, `webcapture`, `web-capture`, `googleweblight`, `googlemessages`,
	`macintosh; intel mac os x) word/`, `macintosh; intel mac os x) excel/`, `macintosh; intel mac os x) powerpoint/`,
	// Checkers and monitors.
	`validator`, `\bscanner`, `monitor`, `checker`, `linkcheck`, `link check`, `backlink`, `\bseo`, `analyzer`, `analyser`,
	`inspector`, `tester/`, `uptime`, `speedtest`, `loadtest`, `pagespeed`, `page speed`, `search console`, `lighthouse`,
	`synthetic`, `observatory`, `ptst`, `pingdom`, `gtmetrix`, `debugbear`, `dareboost`, `catchpoint`, `neustar wpm`,
	`gomezagent`, `wechatdevtools`, `site24x7`, `speedcurve`, `dynatrace`, `newrelic`,
	// HTTP libraries and runtimes.
	`\bcurl`, `libcurl`, `wget`, `libwww`, `python`, `\bperl`, `\bphp`, `ruby/`, `^java`, `go-http`, `okhttp`, `axios`,
	`^node\b`, `node-fetch`, `node.js`, `nodejs`, `urllib`, `httpclient`, `http-client`, `http client`, `http_`, `winhttp`, `guzzle`,
	`nutch`, `heritrix`, `larbin`, `httrack`, `wkhtmlto`, `simplepie`, `siege`, `jakarta`, `\blwp`, `web services client`,
	// Clients of large companies, by words that do not occur in the companies' apps.
	`mediapartners`, `google-`, `google web`, `appengine`, `facebookexternalhit`, `meta-external`, `daumoa`,
}

// ignoredPhrases are parts of people's user agents that look like programs. normalize replaces them
// with blanks before any rule runs.
var ignoredPhrases = [][]byte{
	[]byte("cubot"),     // a phone manufacturer
	[]byte("libwww-fm"), // a part of the text browser Lynx
	[]byte("bytedance"), // TikTok's in-app browser; the company's crawler also contains "spider"
	// Viewers that people read a page with.
	[]byte("(via docs.google.com/viewer)"), []byte("(via translate.google.com)"),
}
