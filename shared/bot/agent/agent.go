// Package agent classifies user agents, and checks whether the headers of a request match the
// browser that its user agent names. It is pure: it does no input or output and keeps no state of
// requests.
package agent

// Kind is the kind of client that a user agent describes.
type Kind int

// The kinds of clients.
const (
	Human Kind = iota // a browser, or an app on a guest's device
	// names a crawler, tool or HTTP library, or does not have the form of a browser's user agent
	Tool
	Automation // a browser with a mark of an automation driver: headless, webdriver, phantom
	Empty      // empty; browsers always send a user agent
)

// String returns the name of a kind in events: "human", "tool", "automation" or "empty". String
// panics for a Kind other than the constants.
func (k Kind) String() string {
	return [...]string{"human", "tool", "automation", "empty"}[k]
}

// Weight returns the weight of a kind in the bot score: 0.5 for Tool and Empty, 0.4 for Automation,
// else 0. Pure; Weight never fails.
func (k Kind) Weight() float64 {
	switch k {
	case Tool, Empty:
		return 0.5
	case Automation:
		return 0.4
	default:
		return 0
	}
}

// AnomalyWeight is the weight of a header anomaly in the bot score.
const AnomalyWeight = 0.15

// Classification is the classification of a user agent.
type Classification struct {
	Kind    Kind
	Name    string // list entry or rule that matched, never text of the user agent; empty for Human
	Crawler string // claimed search engine whose address can be verified: "googlebot"; else empty
}

// maxAgentLength bounds the bytes of a user agent that are read. The longest user agents of people,
// from in-app browsers, have some 700 bytes.
const maxAgentLength = 1024

// Classify classifies a user agent by its first 1,024 bytes. The cost is microseconds, and tens of
// microseconds for a user agent made to be expensive. The first call for a user agent that is not
// blank also builds the rules, in a fraction of a millisecond, and keeps the rules in memory;
// concurrent calls wait. Later calls take no lock. Classify never fails: any text has a
// classification; the empty text and blanks are Empty. Crawler is an unverified claim, and empty
// for every Kind but Tool. Safe for concurrent use.
func Classify(userAgent string) Classification {
	t := normalize(userAgent)
	if t.lower == "" {
		return Classification{Kind: Empty, Name: "empty"}
	}
	l := loadedRules()
	if name := l.matchTool(t); name != "" {
		return Classification{Tool, name, claimedCrawler(t.lower)}
	}
	driver := l.automations.find(t.lower)
	if name := formatViolation(t, driver != ""); name != "" {
		return Classification{Kind: Tool, Name: name}
	}
	if driver != "" {
		return Classification{Kind: Automation, Name: driver}
	}
	return Classification{}
}
