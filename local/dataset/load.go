package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Report counts the rows of a file.
type Report struct {
	Source       string       `json:"source"` // the file's base name, or "embedded"
	Rows         int          `json:"rows"`   // non-empty lines or features
	Kept         int          `json:"kept"`
	Skipped      int          `json:"skipped"`
	FirstSkipped []SkippedRow `json:"firstSkipped,omitempty"` // at most 20
}

// SkippedRow is a row that is not in the data set.
type SkippedRow struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

const (
	maxSkips = 20
	maxLine  = 4 << 20 // bytes
)

func (r *Report) skip(line int, reason error) {
	r.Skipped++
	if len(r.FirstSkipped) < maxSkips {
		r.FirstSkipped = append(r.FirstSkipped, SkippedRow{line, reason.Error()})
	}
}

// emptyError returns an error for a file without a usable row, with the reasons of the first 5
// lines.
func (r *Report) emptyError() error {
	if r.Kept > 0 {
		return nil
	}
	if r.Rows == 0 {
		return errors.New("the file has no rows")
	}
	var b strings.Builder
	for i, s := range r.FirstSkipped {
		if i == 5 {
			break
		}
		fmt.Fprintf(&b, "\n  line %d: %s", s.Line, s.Reason)
	}
	return fmt.Errorf("the file has %d rows and no accommodation%s", r.Rows, b.String())
}

// Load reads accommodations from a file: JSON lines (an object or a GeoJSON feature per line) or a
// GeoJSON FeatureCollection as exported from OpenStreetMap. It holds the whole file in memory. It
// skips unusable rows and lists the first 20 in the report. It returns an error if the file cannot
// be read, has a line above 4 MiB, is a FeatureCollection with invalid JSON, or has no usable row.
func Load(path string) (*Dataset, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err) // err contains the path
	}
	known := loadGazetteer()
	rows, report, err := readRows(known, data)
	if err != nil {
		return nil, fmt.Errorf("dataset: read %s: %w", path, err)
	}
	report.Source = filepath.Base(path)
	return build(known, rows, report), nil
}

// readRows reads the rows of a file's content and ignores a byte order mark.
func readRows(known *gazetteer, data []byte) ([]Row, Report, error) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	c := collector{gazetteer: known, lineByID: map[string]int{}}
	err := c.readAll(data)
	if err == nil {
		err = c.report.emptyError()
	}
	return c.rows, c.report, err
}

// collector collects the usable rows of a file and the reasons of the skipped rows.
type collector struct {
	gazetteer *gazetteer
	rows      []Row
	report    Report
	lineByID  map[string]int // row id → line
}

func (c *collector) readAll(data []byte) error {
	if isFeatureCollection(data) {
		return c.readFeatures(data)
	}
	return c.readLines(bytes.NewReader(data))
}

// isFeatureCollection distinguishes a FeatureCollection, on one line or many, from JSON lines.
func isFeatureCollection(data []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return false
		}
		if key == "features" {
			return true
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return false
		}
		if key == "type" {
			return string(value) == `"FeatureCollection"`
		}
	}
	return false
}

// readLines reads JSON lines.
func (c *collector) readLines(r io.Reader) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	line := 0
	for s.Scan() {
		line++
		// Each line of a GeoJSON text sequence (RFC 8142) begins with a record separator.
		text := bytes.TrimSpace(bytes.TrimPrefix(s.Bytes(), []byte{0x1E}))
		if len(text) == 0 {
			continue
		}
		c.report.Rows++
		var f fields
		if err := json.Unmarshal(text, &f); err != nil {
			c.report.skip(line, fmt.Errorf("not a JSON object: %w", withoutGoTypes(err)))
			continue
		}
		c.addObject(line, f)
	}
	if errors.Is(s.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("line %d is longer than %d MiB: is the file JSON lines?", line+1, maxLine>>20)
	}
	return s.Err()
}

// addObject adds the row of an object or of a GeoJSON feature, or reports the reason to skip it.
func (c *collector) addObject(line int, f fields) {
	if f["type"] == "Feature" {
		var err error
		if f, err = flattenFeature(f); err != nil {
			c.report.skip(line, err)
			return
		}
	}
	row, err := f.toRow()
	if err != nil {
		c.report.skip(line, err)
		return
	}
	if row.Country == "" {
		// Maps contain positions without countries. The country of the nearest known city is a
		// guess that may be wrong near a border.
		near := c.gazetteer.nearest("", row.Point, 250)
		if near == nil {
			c.report.skip(line, errNoCountry)
			return
		}
		row.Country = near.Country
	}
	if before, ok := c.lineByID[row.ID]; ok {
		c.report.skip(line, fmt.Errorf("id %q is already on line %d", row.ID, before))
		return
	}
	c.lineByID[row.ID] = line
	c.rows = append(c.rows, row)
	c.report.Kept++
}

// withoutGoTypes removes Go's type names from an error for the developer.
func withoutGoTypes(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("the value is a JSON %s", wrong.Value)
	}
	return err
}
