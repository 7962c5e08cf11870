package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// allowedProperties is every property an event may have. A new one is added here by somebody who
// has asked whether it could carry what a guest typed, who a guest is, or where.
var allowedProperties = strings.Fields(`
	envelope payload
	eventId subject version occurredAt publishedAt producer producerInstance tenantId userId sessionId requestId
	traceId causationId correlationId schemaUri retentionClass samplingRate
	guestSessionId searchSessionId wishlistId handoffId id propertyId tenantSlug hmacKeyId
	fingerprintHash ipHash userAgentHash queryHash userAgentClass
	createdAt endedAt lastSeenAt addedAt removedAt mintedAt expiresAt evaluatedAt viewedAt
	localePreference currencyPreference locale currency previousLocale newLocale previousCurrency newCurrency
	campaignAttribution sourceCampaign source medium campaign trigger reason lifetimeSeconds
	kind geo mode city region country dates checkIn checkOut occupancy adults children rooms childrenAges
	filterKeys sortKey page limit offset resultCount fromCache compositionMs position wishlistSize
	score verdict signals weight detail actionTaken path referer originReferer step metadata
`)

func TestEventPrivacy_SchemasHaveNoOpenProperties(t *testing.T) {
	for path, doc := range embeddedSchemas(t) {
		for _, leak := range findOpenProperties(path, doc) {
			t.Error(leak)
		}
	}
}

func TestEventPrivacy_DetectsOpenProperties(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"a name that is not allowed": {`{"properties": {"email": {"type": "null"}}}`, "email is not on the list"},
		"any string":                 {`{"properties": {"note": {"type": "string"}, "city": {"type": "string"}}}`, "city could be any text"},
		"a long string":              {`{"properties": {"city": {"type": "string", "maxLength": 90}}}`, "city could be any text"},
		"a pattern somewhere":        {`{"properties": {"city": {"type": "string", "pattern": "[a-z]"}}}`, "city could be any text"},
		"a string or null":           {`{"properties": {"city": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}`, "city.anyOf.0 could be any text"},
		"several types":              {`{"properties": {"city": {"type": ["string", "null"], "pattern": "^a$"}}}`, "city could be anything"},
		"no type":                    {`{"properties": {"city": {}}}`, "city could be anything"},
		"always true":                {`{"properties": {"city": true}}`, "city could be anything"},
		"any number":                 {`{"properties": {"position": {"type": "number"}}}`, "position could be any number"},
		"a number without end":       {`{"properties": {"position": {"type": "integer", "minimum": 0}}}`, "position could be any number"},
		"an open object":             {`{"properties": {"geo": {"type": "object", "properties": {}}}}`, "geo is open"},
		"an object of anything":      {`{"properties": {"geo": {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^a$"}}}}`, "geo.* could be any text"},
		"names of anything":          {`{"properties": {"geo": {"type": "object", "additionalProperties": {"type": "null"}}}}`, "geo has names of any text"},
		"a list of anything":         {`{"properties": {"signals": {"type": "array", "items": {"type": "string"}}}}`, "signals.* could be any text"},
		"a list of no type":          {`{"properties": {"signals": {"type": "array"}}}`, "signals.* could be anything"},
		"in a definition":            {`{"$defs": {"name": {"type": "string"}}}`, "name could be any text"},
	} {
		t.Run(name, func(t *testing.T) {
			var doc map[string]any
			if err := json.Unmarshal([]byte(c.schema), &doc); err != nil {
				t.Fatal(err)
			}
			found := findOpenProperties("x", doc)
			if !slices.ContainsFunc(found, func(leak string) bool { return strings.HasSuffix(leak, c.want) }) {
				t.Errorf("%q, want %q", found, c.want)
			}
		})
	}
}

// findOpenProperties lists the places of a document through which free text, free numbers or
// unlisted properties pass.
func findOpenProperties(at string, doc map[string]any) (found []string) {
	for name, sub := range asObject(doc["$defs"]) {
		found = append(found, checkSchema(at+"#"+name, sub)...)
	}
	if doc["type"] == "object" || doc["properties"] != nil {
		found = append(found, checkProperties(at, doc)...)
	}
	return found
}

func checkProperties(at string, schema map[string]any) (found []string) {
	for name, sub := range asObject(schema["properties"]) {
		if !slices.Contains(allowedProperties, name) {
			found = append(found, at+"."+name+" is not on the list")
		}
		found = append(found, checkSchema(at+"."+name, sub)...)
	}
	return found
}

// checkSchema judges one schema: closed words, bounded numbers and anchored patterns pass.
func checkSchema(at string, value any) []string {
	schema := asObject(value)
	if schema["enum"] != nil || schema["const"] != nil {
		return nil
	}
	if schema["$ref"] != nil { // judged where it is defined; what stands beside it may only narrow it
		return nil
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		var found []string
		for i, choice := range choices {
			found = append(found, checkSchema(fmt.Sprintf("%s.anyOf.%d", at, i), choice)...)
		}
		return found
	}
	switch schema["type"] {
	case "null", "boolean":
		return nil
	case "string":
		pattern, _ := schema["pattern"].(string)
		if !strings.HasPrefix(pattern, "^") || !strings.HasSuffix(pattern, "$") {
			return []string{at + " could be any text"}
		}
		return nil
	case "integer", "number":
		if schema["maximum"] == nil || schema["minimum"] == nil && schema["exclusiveMinimum"] == nil {
			return []string{at + " could be any number"}
		}
		return nil
	case "array":
		return checkSchema(at+".*", schema["items"])
	case "object":
		found := checkProperties(at, schema)
		if schema["additionalProperties"] == false {
			return found
		}
		if schema["additionalProperties"] == nil {
			return append(found, at+" is open")
		}
		if schema["propertyNames"] == nil {
			found = append(found, at+" has names of any text")
		}
		return append(found, checkSchema(at+".*", schema["additionalProperties"])...)
	default:
		return []string{at + " could be anything"}
	}
}

func asObject(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// What a guest could leave behind must not fit anywhere, whichever field of the code it is put in.
func TestEventPrivacy_NoFieldAcceptsPersonalData(t *testing.T) {
	places := map[string]bool{"payload.geo.city": true, "payload.geo.region": true}
	tokens := map[string]bool{}
	for _, of := range []string{"campaignAttribution", "sourceCampaign"} {
		for _, part := range []string{"source", "medium", "campaign"} {
			tokens["payload."+of+"."+part] = true
		}
	}
	hostile := map[any]map[string]bool{ // → the fields that cannot tell it from their own values
		"ahmad.rahimi@example.af": nil,
		"+93 70 123 4567":         nil,
		"2001:db8::7":             nil,
		"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537": nil,
		"https://mail.example/inbox?to=ahmad":             nil,
		"near my uncle's house, room 1214":                nil,
		"Ahmad\nRahimi":                                   nil,
		"<b>x</b>":                                        nil,
		"":                                                nil,
		"Ahmad Rahimi":                                    places,
		"203.0.113.7":                                     tokens,
		34.5553:                                           nil,
		93701234567.0:                                     nil,
		strings.Repeat("a", 1_000):                        nil,
	}
	schemas, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	for name, payload := range samples {
		doc := sampleDocument(t, name)
		for path, own := range flatten("", doc) {
			for value, exempt := range hostile {
				if exempt[path] {
					continue
				}
				setAtPath(doc, strings.Split(path, "."), value)
				if schemas[SchemaURI(payload.Subject())].Validate(doc) == nil {
					t.Errorf("%s: %s takes %q", name, path, value)
				}
			}
			setAtPath(doc, strings.Split(path, "."), own)
		}
	}
}

// flatten is every value of a document by its dotted path.
func flatten(at string, v any) map[string]any {
	all := map[string]any{}
	switch v := v.(type) {
	case map[string]any:
		for name, sub := range v {
			maps.Copy(all, flatten(strings.TrimPrefix(at+"."+name, "."), sub))
		}
	case []any:
		for i, sub := range v {
			maps.Copy(all, flatten(fmt.Sprintf("%s.%d", at, i), sub))
		}
	default:
		all[at] = v
	}
	return all
}

func setAtPath(in any, path []string, value any) {
	switch in := in.(type) {
	case map[string]any:
		if len(path) == 1 {
			in[path[0]] = value
			return
		}
		setAtPath(in[path[0]], path[1:], value)
	case []any:
		var i int
		fmt.Sscan(path[0], &i)
		if len(path) == 1 {
			in[i] = value
			return
		}
		setAtPath(in[i], path[1:], value)
	}
}

func TestEventPrivacy_ValidationErrorOmitsValue(t *testing.T) {
	p := samples["search.executed.v1"].(SearchExecuted)
	p.Geo.City = "ahmad.rahimi@example.af"
	err := Validate(New(Meta{Now: sampleTime}, p))
	if err == nil || strings.Contains(err.Error(), "ahmad") {
		t.Error(err)
	}
}
