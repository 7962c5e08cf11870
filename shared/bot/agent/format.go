package agent

import (
	"strings"
	"unicode"
)

// A browser's agent has a form: it begins in one of few ways, says on what it runs, and which engine draws.
// Whoever writes a program's by hand rarely gets that right, whatever the program is called.

// browserPrefixes are those of browsers, of players and apps with a name of their own, and of phones and televisions whose
// agent begins with the model.
var browserPrefixes = []string{
	// Browsers.
	"mozilla", "opera", "applewebkit/", "chrome/", "firefox/", "safari/", "mobilesafari/", "msie", "konqueror", "midori/",
	"galeon/", "epiphany/", "dooble/", "netsurf/", "seamonkey/", "vivaldi/", "brave/", "dillo/", "ibrowse/", "icab/", "amaya/",
	"hotjava/", "uzbl", "ncsa", "cyberdog/", "offbyone", "ice browser/", "netfront", "openwave", "up.browser", "doris/",
	"lynx/", "links (", "links/", "elinks", "w3m/", "emacs-w3m/", "edbrowse/", "retawq/", "ucweb", "juc", "mqqbrowser", "dalvik/",
	// Apps and players, and what the systems of phones fetch for their owners.
	"[fban", "instagram", "pinterest/", "pinner/", "viber/", "outlook-ios/", "microsoft office/", "mail/", "exampleapp",
	"networkingextension", "webprocess", "springboard", "itunes/", "quicktime/", "applecoremedia", "podcasts/", "spotify/",
	"windows-media-player/", "nsplayer/", "roku/",
	// Makers of phones.
	"alcatel", "amoi", "benq", "blackberry", "coolpad", "docomo", "ericsson", "gionee", "haier", "hisense", "htc", "huawei",
	"infinix", "itel", "j-phone", "k-touch", "karbonn", "kddi", "konka", "kwc-", "lava", "lenovo", "lg-", "lge-", "micromax",
	"mot-", "motorola", "nokia", "oppo", "palm", "panasonic", "pantech", "philips", "portalmmm/", "sagem", "samsung", "sanyo",
	"sch-", "sec-", "sgh-", "sharp", "sie-", "siemens", "softbank", "sonyericsson", "spice", "tecno", "tianyu", "vivo",
	"vodafone", "xiaomi", "zte",
}

// deviceTokens are what the agents of apps say of the phone, console or Mac that they run on. An app that a person has
// open may call itself anything.
var deviceTokens = []string{
	" darwin/", "iphone", "ipad", "ipod", "(ios ", " ios ", " ios/", "android", "macintosh", "playstation", "(ps4)", "(ps5)",
	"xbox", "nintendo", "midp", "symbian", "opera mini/", "amiga",
	"windows phone", "windows mobile", "smarttv",
	"smart-tv", "tizen", "web0s", "sonos", "wap browser", "maui browser",
}

// engineTokens are what draws, and what only an agent with an engine has.
var engineTokens = []string{
	"applewebkit", "gecko/", "like gecko", "trident/", "msie ", "presto/", "khtml", "opera/", "goanna/", "webkit/", "firefox/",
}

// formatViolation names what no browser does, or nothing. A driver's name without a browser's is no browser.
func formatViolation(t agentText, driven bool) string {
	own, mozilla, ok := strings.Cut(t.lower, "mozilla/")
	switch {
	case !ok:
		if hasAnyPrefix(t.lower, browserPrefixes) || containsAny(t.lower, deviceTokens) || containsAny(t.lower, engineTokens) || !driven && isBareName(t.lower) {
			return ""
		}
		return "not-a-browser"
	case strings.ContainsAny(own, "/,") && !hasAnyPrefix(own, browserPrefixes):
		return "before-mozilla" // a program that passes on a browser's agent behind its own
	case isOnlyCompatible(mozilla):
		return "only-compatible"
	case lacksPlatform(mozilla):
		return "no-platform"
	}
	return ""
}

// isBareName says that an agent is one or two short words and nothing more: DLME, Google Talk. Programs are called so, but so are
// the apps of phones and set-top boxes, and there is no end to their names; what a program does tells it all the same.
func isBareName(name string) bool {
	if len(name) > maxBareName {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && c != '-' && c != ' ' {
			return false
		}
	}
	return strings.IndexFunc(name, unicode.IsLetter) >= 0 && !containsAny(name, libraryTokens)
}

const maxBareName = 9

// libraryTokens are in the bare names of what calls for programs.
var libraryTokens = []string{"http", "curl", "request", "client", "undici", "fetch"}

// isOnlyCompatible says that an agent is of the form Mozilla/5.0 (compatible; Name/1.0) with nothing else.
func isOnlyCompatible(mozilla string) bool {
	_, inside, ok := strings.Cut(mozilla, "(compatible;")
	inside = strings.TrimRight(inside, "); ")
	name, version, versioned := strings.Cut(inside, "/")
	return ok && versioned && !strings.ContainsAny(name, ";)") && !strings.ContainsAny(version, "/;) ") &&
		!containsAny(name, compatibleBrowsers)
}

// compatibleBrowsers are the browsers that call themselves compatible and nothing else.
var compatibleBrowsers = []string{
	"msie", "konqueror", "netpositive", "netfront", "opera", "icab", "omniweb", "ibrowse", "voyager", "blazer", "obigo",
}

// lacksPlatform says that an agent goes on with a product where a browser says what it runs on: Mozilla/5.0 Name/1.0.
func lacksPlatform(mozilla string) bool {
	_, product, ok := strings.Cut(mozilla, " ")
	return ok && strings.Contains(product, "/") && !strings.ContainsAny(product, "(;") && !containsAny(product, engineTokens) &&
		!hasAnyPrefix(product, browserPrefixes)
}

func hasAnyPrefix(s string, with []string) bool {
	for _, prefix := range with {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

func containsAny(s string, any []string) bool {
	for _, part := range any {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}
