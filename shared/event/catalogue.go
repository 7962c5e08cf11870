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

// subjectInfo describes a subject.
type subjectInfo struct {
	subject   string
	retention Retention
	decode    func(jsontext.Value) (Payload, error)
}

// catalogue lists every subject that this service publishes.
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

// newSubjectInfo describes the subject of payload P.
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

// Subjects returns every subject of the catalogue, sorted, in a new slice.
func Subjects() []string { return slices.Sorted(maps.Keys(catalogue)) }

// SchemaURI returns the published address of a subject's JSON Schema: for
// melmastoon.bff.consumer.search.executed.v1 it is …/bff-consumer/search-executed/v1.json. subject
// must be in the catalogue: otherwise there is no schema at the address, and a text without a dot
// may panic. Pure.
func SchemaURI(subject string) string { return SchemaBase + schemaPath(subject) }

var kebabReplacer = strings.NewReplacer(".", "-", "_", "-")

func schemaPath(subject string) string {
	name := strings.TrimPrefix(subject, subjectPrefix)
	dot := strings.LastIndexByte(name, '.')
	return kebabReplacer.Replace(name[:dot]) + "/" + name[dot+1:] + ".json"
}

// version returns n of a subject that ends in v<n>.
func version(subject string) int {
	n, _ := strconv.Atoi(subject[strings.LastIndexByte(subject, '.')+2:])
	return n
}
