package event

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const subjectPrefix = "melmastoon.bff.consumer."

// kind is what this package knows about a subject.
type kind struct {
	subject   string
	retention Retention
	decode    func(jsontext.Value) (Payload, error)
}

// catalogue has every subject this service may publish; there are no others.
var catalogue = bySubject(
	of[SessionStarted](Operational),
	of[SessionEnded](Operational),
	of[SearchExecuted](Operational),
	of[ClickRecorded](Operational),
	of[HandoffInitiated](Audit),
	of[LocaleChanged](Operational),
	of[CurrencyChanged](Operational),
	of[WishlistAdded](Operational),
	of[WishlistRemoved](Operational),
	of[BotSuspected](Audit),
	of[PageViewed](Operational),
	of[FunnelStepRecorded](Operational),
)

// of describes the payload P, which knows its own subject.
func of[P Payload](retention Retention) kind {
	var p P
	return kind{p.Subject(), retention, func(data jsontext.Value) (Payload, error) {
		var p P
		err := json.Unmarshal(data, &p)
		return p, err
	}}
}

func bySubject(kinds ...kind) map[string]kind {
	all := make(map[string]kind, len(kinds))
	for _, k := range kinds {
		all[k.subject] = k
	}
	return all
}

// Subjects lists every subject this service publishes, sorted.
func Subjects() []string { return slices.Sorted(maps.Keys(catalogue)) }

// SchemaURI is where the schema of a subject's messages is published:
// melmastoon.bff.consumer.search.executed.v1 is described by …/bff-consumer/search-executed/v1.json.
func SchemaURI(subject string) string { return SchemaBase + schemaPath(subject) }

var dashes = strings.NewReplacer(".", "-", "_", "-")

func schemaPath(subject string) string {
	name := strings.TrimPrefix(subject, subjectPrefix)
	dot := strings.LastIndexByte(name, '.')
	return dashes.Replace(name[:dot]) + "/" + name[dot+1:] + ".json"
}

// version is the n of a subject's last part, v<n>.
func version(subject string) int {
	n, _ := strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+2:])
	return n
}
