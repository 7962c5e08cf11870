package geo

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxRes is the finest H3 resolution: cells of about 0.9 m². Resolution 0 has 122 cells of about
// 4.4 million km².
const MaxRes = 15

// Cell is an H3 cell in the 64-bit form of H3. The zero Cell is not a cell. All methods are pure.
//
// Bits, from the highest: 0 | mode, 4: always 1 | reserved, 3: 0 | resolution, 4 | base cell, 7 |
// fifteen digits of 3 bits, coarsest first: the position of the cell in its parent; 7 beyond the
// resolution.
type Cell uint64

const (
	modeCell    Cell = 1 << 59
	resShift         = 52
	baseShift        = 45
	unusedDigit      = 7
	allUnused   Cell = 1<<baseShift - 1
)

// digitShift returns the position of the digit of a resolution 1 … 15.
func digitShift(res int) int { return 3 * (MaxRes - res) }

// ParseCell parses the text form of String, with or without the prefix "h3:": fifteen lower-case
// hexadecimal digits. It returns 0 and an error for any text that is not a cell of the H3 grid; the
// error repeats at most 40 characters of s. Pure.
func ParseCell(s string) (Cell, error) {
	hex := strings.TrimPrefix(s, "h3:")
	n, err := strconv.ParseUint(hex, 16, 64)
	c := Cell(n)
	if err != nil || !c.Valid() || c.hex() != hex { // c.hex() != hex: no capitals, no leading zero
		return 0, fmt.Errorf("geo: parse cell: %.40q is not an H3 cell", s)
	}
	return c, nil
}

// String returns the text form of the cell: "h3:8a283082aa67fff". It never fails; ParseCell rejects
// the text of an invalid cell.
func (c Cell) String() string { return "h3:" + c.hex() }

func (c Cell) hex() string { return strconv.FormatUint(uint64(c), 16) }

// Valid reports whether c is a cell of the H3 grid.
func (c Cell) Valid() bool {
	if c>>56 != modeCell>>56 || c.base() >= baseCells {
		return false
	}
	leading := 0
	for res := 1; res <= c.Res(); res++ {
		digit := c.digit(res)
		if digit == unusedDigit {
			return false
		}
		if leading == 0 {
			leading = digit
		}
	}
	if pentagons[c.base()] && leading == digitK { // the sixth of the plane missing from a pentagon
		return false
	}
	unused := Cell(1)<<digitShift(c.Res()) - 1
	return c&unused == unused
}

// Res returns the resolution of the cell, 0 … 15. It does not check c; the zero Cell gives 0.
func (c Cell) Res() int { return int(c >> resShift & 15) }

// Parent returns the ancestor of a valid cell at a resolution; c for the resolution of c, and 0 for
// a finer or negative res. For an invalid c the result is not a valid cell or has no meaning;
// Parent never panics.
//
// The parent of the cell at a point is not always the coarser cell at that point: children reach a
// little over the edge of the parent, and grandchildren a little further.
func (c Cell) Parent(res int) Cell {
	if res < 0 || res > c.Res() {
		return 0
	}
	c &^= 15 << resShift
	return c | Cell(res)<<resShift | (Cell(1)<<digitShift(res) - 1)
}

// Ancestors returns the ancestors of a valid cell by resolution, from 0, in a new slice of at most
// 16 cells; the last element is c.
func (c Cell) Ancestors() []Cell {
	all := make([]Cell, c.Res()+1)
	for res := range all {
		all[res] = c.Parent(res)
	}
	return all
}

func (c Cell) base() int { return int(c >> baseShift & 127) }

func (c Cell) digit(res int) int { return int(c >> digitShift(res) & 7) }
