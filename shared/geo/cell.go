package geo

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxRes is the finest H3 resolution: cells of about 0.9 m². Resolution 0 has 122 cells of about 4.4 million km².
const MaxRes = 15

// Cell is an H3 cell, in H3's own 64-bit form. The zero Cell is no cell.
//
// Bits, from the highest: 0 | mode, 4: always 1 | reserved, 3: 0 | resolution, 4 | base cell, 7 |
// fifteen digits of 3 bits, coarsest first: which child of its parent the cell is, 7 beyond its resolution.
type Cell uint64

const (
	modeCell    Cell = 1 << 59
	resShift         = 52
	baseShift        = 45
	unusedDigit      = 7
	allUnused   Cell = 1<<baseShift - 1
)

// digitShift is where the digit of a resolution 1 … 15 begins.
func digitShift(res int) int { return 3 * (MaxRes - res) }

// ParseCell reads a cell as String writes it, with or without the prefix "h3:": fifteen lower-case hexadecimal digits.
// It refuses whatever is not a cell of the H3 grid.
func ParseCell(s string) (Cell, error) {
	hex := strings.TrimPrefix(s, "h3:")
	n, err := strconv.ParseUint(hex, 16, 64)
	c := Cell(n)
	if err != nil || !c.Valid() || c.hex() != hex { // the last: no capitals, no leading zero
		return 0, fmt.Errorf("geo: parse cell: %.40q is not an H3 cell", s)
	}
	return c, nil
}

// String is the cell's name on the wire: "h3:8a283082aa67fff".
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
	if pentagons[c.base()] && leading == digitK { // the sixth of the plane a pentagon has not
		return false
	}
	unused := Cell(1)<<digitShift(c.Res()) - 1
	return c&unused == unused
}

// Res is the cell's resolution, 0 … 15.
func (c Cell) Res() int { return int(c >> resShift & 15) }

// Parent is the cell's ancestor at a resolution, the cell itself at its own. It is 0 when res is finer, or negative.
//
// The parent of the cell at a point is not always the coarser cell at that point: children reach a little
// over their parent's edge, and grandchildren over theirs.
func (c Cell) Parent(res int) Cell {
	if res < 0 || res > c.Res() {
		return 0
	}
	c &^= 15 << resShift
	return c | Cell(res)<<resShift | (Cell(1)<<digitShift(res) - 1)
}

// Ancestors are the cell's ancestors by resolution, from 0 to its own: the last is the cell itself.
func (c Cell) Ancestors() []Cell {
	all := make([]Cell, c.Res()+1)
	for res := range all {
		all[res] = c.Parent(res)
	}
	return all
}

func (c Cell) base() int { return int(c >> baseShift & 127) }

func (c Cell) digit(res int) int { return int(c >> digitShift(res) & 7) }
