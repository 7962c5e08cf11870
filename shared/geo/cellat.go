package geo

// CellAt returns the H3 cell of resolution res, 0 … 15, containing p; 0 for an invalid p or res. It
// never fails otherwise. Pure.
func CellAt(p Point, res int) Cell {
	if !p.Valid() || res < 0 || res > MaxRes {
		return 0
	}
	onFace, z := locate(p.vector(), res)
	return cellOf(onFace, z, res)
}

// cellOf returns the cell of a site of a face. It goes up to resolution 0 and rotates the collected
// digits from the axes of the face to those of the base cell.
func cellOf(onFace int, z eisenstein[int], res int) Cell {
	var digits [MaxRes + 1]int
	leading := digitCentre // the coarsest digit except digitCentre
	for r := res; r > 0; r-- {
		z, digits[r] = apertureTo(r).parent(z)
		if digits[r] != digitCentre {
			leading = digits[r]
		}
	}
	at := baseCellSites[onFace][z.a+2][z.b+2]
	turn := at.rotations
	if pentagons[at.base] && rotated(leading, turn) == digitK {
		turn += pentagonRotation(z, leading)
	}
	c := modeCell | Cell(res)<<resShift | Cell(at.base)<<baseShift | allUnused
	for r := 1; r <= res; r++ {
		c ^= Cell(unusedDigit^rotated(digits[r], turn)) << digitShift(r)
	}
	return c
}

// pentagonRotation returns the additional rotation, 1 or 5, for a leading digit in the missing
// sixth of a pentagon: by one sixth, away from the digit pointing to the middle of the face.
func pentagonRotation(corner eisenstein[int], leading int) int {
	inward := digitJK
	switch corner {
	case eisenstein[int]{0, 2}:
		inward = digitIK
	case eisenstein[int]{-2, -2}:
		inward = digitIJ
	}
	if rotated(inward, 1) == leading {
		return 1
	}
	return 5
}
