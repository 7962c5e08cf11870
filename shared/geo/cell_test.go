package geo

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// referenceCell is an output of the reference implementation: a point, the cell of the point at a
// resolution, and a parent of the cell.
type referenceCell struct {
	p            Point
	res          int
	cell, parent Cell
}

func reference(t testing.TB) (all []referenceCell) {
	t.Helper()
	file, err := os.Open("testdata/h3.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var r referenceCell
		if _, err := fmt.Sscanf(lines.Text(), "%g %g %d %x %x", &r.p.Lat, &r.p.Lng, &r.res, &r.cell, &r.parent); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil || len(all) < 1000 {
		t.Fatalf("got %d lines, %v, want at least 1000", len(all), err)
	}
	return all
}

func TestParent_MatchesReference(t *testing.T) {
	t.Parallel()
	for _, r := range reference(t) {
		if got := r.cell.Parent(r.parent.Res()); got != r.parent {
			t.Errorf("parent of %v at resolution %d: got %v, want %v", r.cell, r.parent.Res(), got, r.parent)
		}
	}
}

func TestAncestors_OrderedByResolution(t *testing.T) {
	t.Parallel()
	c, err := ParseCell("h3:8a283082aa67fff")
	if err != nil {
		t.Fatal(err)
	}
	all := c.Ancestors()
	if len(all) != 11 || all[10] != c || all[0].String() != "h3:8029fffffffffff" {
		t.Fatalf("got ancestors %v", all)
	}
	for res, a := range all {
		if a.Res() != res || !a.Valid() || a != c.Parent(res) {
			t.Errorf("ancestor at resolution %d: got %v", res, a)
		}
	}
	for _, res := range []int{-1, 11, 15, 16} {
		if got := c.Parent(res); got != 0 {
			t.Errorf("parent at resolution %d: got %v, want 0", res, got)
		}
	}
}

func TestParseCell_IsStrict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		ok       bool
	}{
		{"prefixed", "h3:8a283082aa67fff", true},
		{"bare", "8a283082aa67fff", true},
		{"base cell", "8029fffffffffff", true},
		{"finest", "8f283082aa60000", true},
		{"last base cell", "80f3fffffffffff", true},
		{"pentagon", "8009fffffffffff", true},
		{"pentagon's centre child", "81083ffffffffff", true},
		{"child beside a pentagon's centre", "8108bffffffffff", true},
		{"finest pentagon", "8fea00000000000", true},
		{"beside a pentagon's centre, then K", "82088ffffffffff", true},
		{"gap of a pentagon, in a hexagon", "82280ffffffffff", true},

		{"empty", "", false},
		{"only a prefix", "h3:", false},
		{"prefix twice", "h3:h3:8a283082aa67fff", false},
		{"prefix in capitals", "H3:8a283082aa67fff", false},
		{"capitals", "8A283082AA67FFF", false},
		{"leading zero", "08a283082aa67fff", false},
		{"sign", "+8a283082aa67fff", false},
		{"0x", "0x8a283082aa67fff", false},
		{"underscore", "8a28_3082aa67fff", false},
		{"space", " 8a283082aa67fff", false},
		{"short", "8a283082aa67ff", false},
		{"long", "8a283082aa67fffff", false},
		{"not hexadecimal", "8a283082aa67ffg", false},
		{"zero", "0", false},
		{"highest bit", "88a283082aa67fff", false},
		{"mode of an edge", "10a283082aa67fff", false},
		{"reserved bits", "9a283082aa67fff", false},
		{"base cell 122", "80f5fffffffffff", false},
		{"a digit missing", "8a283082aa7ffff", false},
		{"a digit too many", "8a283082aa67ffe", false},
		{"finest with a digit missing", "8f283082aa67fff", false},
		{"gap of a pentagon", "81087ffffffffff", false},
		{"deeper gap of a pentagon", "82080ffffffffff", false},
		{"gap of the last pentagon", "84ea017ffffffff", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParseCell(c.in)
			if (err == nil) != c.ok || got.Valid() != c.ok {
				t.Errorf("ParseCell(%q): got %v, %v, want ok %t", c.in, got, err, c.ok)
			}
			if c.ok && got.String() != "h3:"+strings.TrimPrefix(c.in, "h3:") {
				t.Errorf("ParseCell(%q).String(): got %v", c.in, got)
			}
		})
	}
}

func FuzzParseCell(f *testing.F) {
	f.Add("h3:8a283082aa67fff")
	f.Add("8009fffffffffff")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCell(s)
		if err != nil {
			return
		}
		if name := c.String(); name != s && name != "h3:"+s {
			t.Fatalf("ParseCell(%q).String(): got %v", s, c)
		}
		for _, a := range c.Ancestors() {
			if again, err := ParseCell(a.String()); err != nil || again != a {
				t.Fatalf("ancestor %v of %v: got %v, %v", a, c, again, err)
			}
		}
	})
}
