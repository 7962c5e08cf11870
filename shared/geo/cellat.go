package geo

// CellAt is the H3 cell of a resolution, 0 … 15, that contains p. It is 0 when p or res is not valid.
func CellAt(p Point, res int) Cell {
	if !p.Valid() || res < 0 || res > MaxRes {
		return 0
	}
	onFace, z := locate(p.vector(), res)
	return cellOf(onFace, z, res)
}

// cellOf names a site of a face: it climbs to resolution 0, and turns the digits met on the way
// from the face's axes to those of the base cell found there.
func cellOf(onFace int, z eisenstein[int], res int) Cell {
	var digits [MaxRes + 1]int
	leading := digitCentre // the coarsest digit that is not the centre
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

// pentagonRotation is the further turn for a leading digit that lands in the sixth a pentagon lacks: on by one more,
// away from the digit that points to the middle of the face. It is 1 or 5.
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
