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

// subjectInfo is what this package knows about a subject.
type subjectInfo struct {
	subject   string
	retention Retention
	decode    func(jsontext.Value) (Payload, error)
}

// catalogue has every subject this service may publish; there are no others.
var catalogue = indexBySubject(
	newSubjectInfo[SessionStarted](Operational),
	newSubjectInfo[SessionEnded](Operational),
	newSubjectInfo[SearchExecuted](Operational),
	newSubjectInfo[ClickRecorded](Operational),
	newSubjectInfo[HandoffInitiated](Audit),
	newSubjectInfo[LocaleChanged](Operational),
	newSubjectInfo[CurrencyChanged](Operational),
	newSubjectInfo[WishlistAdded](Operational),
	newSubjectInfo[WishlistRemoved](Operational),
	newSubjectInfo[BotSuspected](Audit),
	newSubjectInfo[PageViewed](Operational),
	newSubjectInfo[FunnelStepRecorded](Operational),
)

// newSubjectInfo describes the payload P, which knows its own subject.
func newSubjectInfo[P Payload](retention Retention) subjectInfo {
	var p P
	return subjectInfo{p.Subject(), retention, func(data jsontext.Value) (Payload, error) {
		var p P
		err := json.Unmarshal(data, &p)
		return p, err
	}}
}

func indexBySubject(kinds ...subjectInfo) map[string]subjectInfo {
	all := make(map[string]subjectInfo, len(kinds))
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

var kebabReplacer = strings.NewReplacer(".", "-", "_", "-")

func schemaPath(subject string) string {
	name := strings.TrimPrefix(subject, subjectPrefix)
	dot := strings.LastIndexByte(name, '.')
	return kebabReplacer.Replace(name[:dot]) + "/" + name[dot+1:] + ".json"
}

// version is the n of a subject's last part, v<n>.
func version(subject string) int {
	n, _ := strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+2:])
	return n
}
