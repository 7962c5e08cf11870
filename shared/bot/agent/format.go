package agent

import (
	"strings"
	"unicode"
)

// A browser's user agent has a fixed form: a known prefix, a platform and a rendering engine. A
// user agent written by hand for a program rarely has this form, whatever name it contains.

// browserPrefixes are the prefixes of browsers, of media players and apps with their own names, and
// of phones and televisions whose user agent begins with the model.
var browserPrefixes = []string{
	// Browsers.
	"mozilla", "opera", "applewebkit/", "chrome/", "firefox/", "safari/", "mobilesafari/", "msie", "konqueror", "midori/",
	"galeon/", "epiphany/", "dooble/", "netsurf/", "seamonkey/", "vivaldi/", "brave/", "dillo/", "ibrowse/", "icab/", "amaya/",
	"hotjava/", "uzbl", "ncsa", "cyberdog/", "offbyone", "ice browser/", "netfront", "openwave", "up.browser", "doris/",
	"lynx/", "links (", "links/", "elinks", "w3m/", "emacs-w3m/", "edbrowse/", "retawq/", "ucweb", "juc", "mqqbrowser", "dalvik/",
	// Apps, media players, and requests of phone systems on behalf of a user.
	"[fban", "instagram", "pinterest/", "pinner/", "viber/", "outlook-ios/", "microsoft office/", "mail/", "exampleapp",
	"networkingextension", "webprocess", "springboard", "itunes/", "quicktime/", "applecoremedia", "podcasts/", "spotify/",
	"windows-media-player/", "nsplayer/", "roku/",
	// Phone manufacturers.
	"alcatel", "amoi", "benq", "blackberry", "coolpad", "docomo", "ericsson", "gionee", "haier", "hisense", "htc", "huawei",
	"infinix", "itel", "j-phone", "k-touch", "karbonn", "kddi", "konka", "kwc-", "lava", "lenovo", "lg-", "lge-", "micromax",
	"mot-", "motorola", "nokia", "oppo", "palm", "panasonic", "pantech", "philips", "portalmmm/", "sagem", "samsung", "sanyo",
	"sch-", "sec-", "sgh-", "sharp", "sie-", "siemens", "softbank", "sonyericsson", "spice", "tecno", "tianyu", "vivo",
	"vodafone", "xiaomi", "zte",
}

// deviceTokens name the phone, console or Mac in the user agents of apps. An app may have any name,
// so the device is the only mark of a person.
var deviceTokens = []string{
	" darwin/", "iphone", "ipad", "ipod", "(ios ", " ios ", " ios/", "android", "macintosh", "playstation", "(ps4)", "(ps5)",
	"xbox", "nintendo", "midp", "symbian", "opera mini/", "amiga",
	"windows phone", "windows mobile", "smarttv",
	"smart-tv", "tizen", "web0s", "sonos", "wap browser", "maui browser",
}

// engineTokens name rendering engines, and products that only a user agent with an engine contains.
var engineTokens = []string{
	"applewebkit", "gecko/", "like gecko", "trident/", "msie ", "presto/", "khtml", "opera/", "goanna/", "webkit/", "firefox/",
}

// formatViolation returns the name of the rule by which a user agent does not have the form of a
// browser's, or "". automated means that the user agent names an automation driver; the driver's
// name alone, without a browser's form, is a violation.
func formatViolation(t agentText, automated bool) string {
	own, mozilla, ok := strings.Cut(t.lower, "mozilla/")
	switch {
	case !ok:
		if hasAnyPrefix(t.lower, browserPrefixes) || containsAny(t.lower, deviceTokens) || containsAny(t.lower, engineTokens) || !automated && isBareName(t.lower) {
			return ""
		}
		return "not-a-browser"
	case strings.ContainsAny(own, "/,") && !hasAnyPrefix(own, browserPrefixes):
		return "before-mozilla" // a program that adds a browser's user agent after its own
	case isOnlyCompatible(mozilla):
		return "only-compatible"
	case lacksPlatform(mozilla):
		return "no-platform"
	}
	return ""
}

// isBareName reports whether a user agent is one or two short words only: DLME, Google Talk.
// Programs send such names, but so do countless apps of phones and set-top boxes. So a bare name is
// not a violation; the other signals still detect a program.
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

const maxBareName = 9 // bytes

// libraryTokens occur in the bare names of HTTP libraries.
var libraryTokens = []string{"http", "curl", "request", "client", "undici", "fetch"}

// isOnlyCompatible reports whether a user agent has the form Mozilla/5.0 (compatible; Name/1.0) and
// names no known browser.
func isOnlyCompatible(mozilla string) bool {
	_, inside, ok := strings.Cut(mozilla, "(compatible;")
	inside = strings.TrimRight(inside, "); ")
	name, version, versioned := strings.Cut(inside, "/")
	return ok && versioned && !strings.ContainsAny(name, ";)") && !strings.ContainsAny(version, "/;) ") &&
		!containsAny(name, compatibleBrowsers)
}

// compatibleBrowsers are browsers whose user agent has the form that isOnlyCompatible matches.
var compatibleBrowsers = []string{
	"msie", "konqueror", "netpositive", "netfront", "opera", "icab", "omniweb", "ibrowse", "voyager", "blazer", "obigo",
}

// lacksPlatform reports whether a user agent has a product in the place of the platform:
// Mozilla/5.0 Name/1.0.
func lacksPlatform(mozilla string) bool {
	_, product, ok := strings.Cut(mozilla, " ")
	return ok && strings.Contains(product, "/") && !strings.ContainsAny(product, "(;") && !containsAny(product, engineTokens) &&
		!hasAnyPrefix(product, browserPrefixes)
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

func containsAny(s string, tokens []string) bool {
	for _, token := range tokens {
		if strings.Contains(s, token) {
			return true
		}
	}
	return false
}
