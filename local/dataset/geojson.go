package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// readFeatures reads a FeatureCollection feature by feature, because the export of a country is
// large. It returns an error with a line number if the text is not valid JSON or features is not a
// list.
func (c *collector) readFeatures(data []byte) error {
	lines := lineCounter{data: data, line: 1}
	dec := json.NewDecoder(bytes.NewReader(data))
	fail := func(err error) error {
		return fmt.Errorf("line %d: %w", lines.lineAt(dec.InputOffset()), err)
	}
	if _, err := dec.Token(); err != nil { // the opening brace, which isFeatureCollection has checked
		return fail(err)
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return fail(err)
		}
		if key != "features" {
			var other json.RawMessage
			if err := dec.Decode(&other); err != nil {
				return fail(err)
			}
			continue
		}
		if t, err := dec.Token(); err != nil || t != json.Delim('[') {
			return fail(errors.New("features is not a list"))
		}
		for dec.More() {
			var raw json.RawMessage
			if err := dec.Decode(&raw); err != nil {
				return fail(err)
			}
			line := lines.lineAt(dec.InputOffset() - int64(len(raw)))
			c.report.Rows++
			var f fields
			if err := json.Unmarshal(raw, &f); err != nil {
				c.report.skip(line, fmt.Errorf("not a feature: %w", withoutGoTypes(err)))
				continue
			}
			c.addObject(line, f)
		}
		if _, err := dec.Token(); err != nil {
			return fail(err)
		}
	}
	return nil
}

// lineCounter converts increasing offsets into line numbers.
type lineCounter struct {
	data    []byte
	counted int64
	line    int
}

func (l *lineCounter) lineAt(offset int64) int {
	offset = min(offset, int64(len(l.data)))
	if offset > l.counted {
		l.line += bytes.Count(l.data[l.counted:offset], []byte{'\n'})
		l.counted = offset
	}
	return l.line
}

// flattenFeature returns the members of a row for a GeoJSON feature: the feature's properties, its
// id and the centre of its geometry. It returns an error for a feature without a kind or a
// position.
func flattenFeature(f fields) (fields, error) {
	row := fields{}
	if properties, ok := f["properties"].(map[string]any); ok {
		maps.Copy(row, properties)
		if tags, ok := properties["tags"].(map[string]any); ok { // osmtogeojson nests the tags
			maps.Copy(row, tags)
		}
	}
	if tags, ok := row["other_tags"].(string); ok { // ogr2ogr writes rare tags as a single text
		for key, value := range parseHstore(tags) {
			if _, taken := row[key]; !taken {
				row[key] = value
			}
		}
	}
	if given := f.text(maxText, "id"); given != "" {
		row["id"] = given
	}
	if row.kind() == "" { // a feature of another type, such as a road
		return nil, errNoKind
	}
	geometry, _ := f["geometry"].(map[string]any)
	lng, lat, ok := centroid(geometry)
	if !ok {
		return nil, errNoPosition
	}
	row["lat"], row["lng"] = lat, lng
	return row, nil
}

// centroid returns the mean of the positions of a geometry's first point, line or ring. The mean is
// exact enough for a building. ok is false for a geometry without positions.
func centroid(geometry map[string]any) (lng, lat float64, ok bool) {
	if geometry == nil {
		return 0, 0, false
	}
	if list, isCollection := geometry["geometries"].([]any); isCollection && len(list) > 0 {
		first, _ := list[0].(map[string]any)
		return centroid(first)
	}
	var corners [][2]float64
	collectPositions(geometry["coordinates"], &corners)
	if n := len(corners); n > 1 && corners[0] == corners[n-1] {
		corners = corners[:n-1] // a ring repeats its first corner at the end
	}
	if len(corners) == 0 {
		return 0, 0, false
	}
	for _, c := range corners {
		lng += c[0]
		lat += c[1]
	}
	n := float64(len(corners))
	return lng / n, lat / n, true
}

// collectPositions appends the positions of the first ring or line, at any depth of nesting.
func collectPositions(v any, into *[][2]float64) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return
	}
	if lng, ok := list[0].(float64); ok {
		if len(list) >= 2 {
			if lat, ok := list[1].(float64); ok {
				*into = append(*into, [2]float64{lng, lat})
			}
		}
		return
	}
	for i, inner := range list {
		if deeper, ok := inner.([]any); ok && i > 0 && len(deeper) > 0 {
			if _, nested := deeper[0].([]any); nested {
				return // a second ring is a hole or another building
			}
		}
		collectPositions(inner, into)
	}
}

// parseHstore parses a Postgres hstore text: `"addr:city"=>"Yazd","stars"=>"4"`. It returns the
// pairs before the first syntax error.
func parseHstore(s string) map[string]string {
	all := map[string]string{}
	for s != "" {
		key, rest, ok := cutQuoted(s)
		if !ok {
			break
		}
		rest, ok = strings.CutPrefix(strings.TrimSpace(rest), "=>")
		if !ok {
			break
		}
		value, rest, ok := cutQuoted(strings.TrimSpace(rest))
		if !ok {
			break
		}
		all[key] = value
		s = strings.TrimLeft(rest, ", ")
	}
	return all
}

// cutQuoted cuts a quoted text with backslash escapes from the start of s. ok is false for other
// starts.
func cutQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", "", false
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
			if i < len(s) {
				b.WriteByte(s[i])
			}
		case '"':
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}
