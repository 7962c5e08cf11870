// Package agent judges what a client says of itself: its user agent, and whether its headers are those of the
// browser that it claims to be. It is pure: it looks nothing up, and it keeps nothing of what it read.
package agent

// Kind is what a user agent is taken for.
type Kind int

// The kinds.
const (
	Human      Kind = iota // a browser, or an app on a guest's device
	Tool                   // declares itself a crawler, tool or HTTP library, or is nothing that a browser sends
	Automation             // a browser with the marks of a driver: headless, webdriver, phantom
	Empty                  // says nothing, which no browser does
)

func (k Kind) String() string {
	return [...]string{"human", "tool", "automation", "empty"}[k]
}

// Weight is what the kind adds to a score.
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

// AnomalyWeight is what an anomaly of the headers adds to a score.
const AnomalyWeight = 0.15

// Classification is what a user agent alone says.
type Classification struct {
	Kind    Kind
	Name    string // which entry of the list or which rule decided: never text of the agent itself
	Crawler string // the search engine that it claims to be, if the claim can be verified: "googlebot"
}

// maxAgentLength is how much of a user agent is looked at. The longest that people send, of in-app browsers with all they
// append, have some 700 bytes.
const maxAgentLength = 1024

// Classify takes microseconds, and tens of them for agents made to cost as much as possible.
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
