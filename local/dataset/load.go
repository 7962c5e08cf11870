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

// Report says what was made of a file.
type Report struct {
	Source       string       `json:"source"` // the file's name; "embedded"
	Rows         int          `json:"rows"`   // lines or features that hold something
	Kept         int          `json:"kept"`
	Skipped      int          `json:"skipped"`
	FirstSkipped []SkippedRow `json:"firstSkipped,omitempty"` // at most maxSkips
}

// SkippedRow says why one row was left out.
type SkippedRow struct {
	Line   int    `json:"line"` // from 1
	Reason string `json:"reason"`
}

const (
	maxSkips = 20
	maxLine  = 4 << 20
)

func (r *Report) skip(line int, reason error) {
	r.Skipped++
	if len(r.FirstSkipped) < maxSkips {
		r.FirstSkipped = append(r.FirstSkipped, SkippedRow{line, reason.Error()})
	}
}

// emptyError is the error of a file without any usable row: it names the first lines and what is wrong with them.
func (r *Report) emptyError() error {
	if r.Kept > 0 {
		return nil
	}
	if r.Rows == 0 {
		return errors.New("it has no rows")
	}
	var b strings.Builder
	for i, s := range r.FirstSkipped {
		if i == 5 {
			break
		}
		fmt.Fprintf(&b, "\n  line %d: %s", s.Line, s.Reason)
	}
	return fmt.Errorf("none of its %d rows is a place to stay%s", r.Rows, b.String())
}

// Load reads accommodations from a file: JSON lines (one object, or one GeoJSON feature, a line) or a GeoJSON
// FeatureCollection as exported from OpenStreetMap. Rows that cannot be used are skipped and told in the report; it
// fails when the file cannot be read, is not JSON where JSON must go on, or has no usable row at all.
func Load(path string) (*Dataset, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err) // names the file already
	}
	known := loadGazetteer()
	rows, report, err := readRows(known, data)
	if err != nil {
		return nil, fmt.Errorf("dataset: read %s: %w", path, err)
	}
	report.Source = filepath.Base(path)
	return build(known, rows, report), nil
}

func readRows(known *gazetteer, data []byte) ([]Row, Report, error) {
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	c := collector{gazetteer: known, lineByID: map[string]int{}}
	err := c.readAll(data)
	if err == nil {
		err = c.report.emptyError()
	}
	return c.rows, c.report, err
}

// collector gathers the rows of one file and what is wrong with the rest.
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

// isFeatureCollection tells a FeatureCollection, which may be on one line or on many, from lines of objects.
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

func (c *collector) readLines(r io.Reader) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	line := 0
	for s.Scan() {
		line++
		// A record separator begins each line of a GeoJSON text sequence (RFC 8142).
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
		return fmt.Errorf("line %d is longer than %d MiB: is it JSON lines?", line+1, maxLine>>20)
	}
	return s.Err()
}

// addObject takes one object: a row of ours, or a GeoJSON feature.
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
		// A map says where a hotel is, not in which state. The next city we know is a guess, and good enough inland.
		near := c.gazetteer.nearest("", row.Point, 250)
		if near == nil {
			c.report.skip(line, errNoCountry)
			return
		}
		row.Country = near.Country
	}
	if before, ok := c.lineByID[row.ID]; ok {
		c.report.skip(line, fmt.Errorf("id %q was on line %d", row.ID, before))
		return
	}
	c.lineByID[row.ID] = line
	c.rows = append(c.rows, row)
	c.report.Kept++
}

// withoutGoTypes leaves Go's own type names out of what a person is told.
func withoutGoTypes(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("it is a JSON %s", wrong.Value)
	}
	return err
}
