package geo

import "math"

// eisenstein is an Eisenstein number a + bω, where ω rotates by 120°. On each face of the
// icosahedron the centres of cells form a triangular lattice, the Eisenstein integers. The lattice
// with seven times as many sites is the same lattice divided by an integer of norm 7. So the step
// from a cell to the parent is a division, and the remainder is the position of the child.
type eisenstein[T int | float64] struct{ a, b T }

func (z eisenstein[T]) times(w eisenstein[T]) eisenstein[T] {
	return eisenstein[T]{z.a*w.a - z.b*w.b, z.a*w.b + z.b*w.a - z.b*w.b} // ω² = -1-ω
}

// H3's digits are names of the remainders: the centre child and six children around the centre.
const (
	digitCentre = iota
	digitK      // ω²
	digitJ      // ω
	digitJK     // -1
	digitI      // 1
	digitIK     // -ω
	digitIJ     // -ω²
)

var remainders = [7]eisenstein[int]{
	digitK:  {-1, -1},
	digitJ:  {0, 1},
	digitJK: {-1, 0},
	digitI:  {1, 0},
	digitIK: {0, -1},
	digitIJ: {1, 1},
}

// aperture is a step to the next finer lattice. H3 alternates between two integers of norm 7, with
// rotations of the lattice by 19.1° in opposite directions; the product is exactly 7.
type aperture struct {
	factor   eisenstein[int]
	inverse  eisenstein[int] // conjugate: factor · inverse = 7
	omega    int             // ω modulo the factor
	digitMod [7]int          // the digit of each remainder modulo 7
}

var (
	apertureToOdd = aperture{
		factor: eisenstein[int]{2, -1}, inverse: eisenstein[int]{3, 1}, omega: 2,
		digitMod: [7]int{digitCentre, digitI, digitJ, digitIJ, digitK, digitIK, digitJK},
	}
	apertureToEven = aperture{
		factor: eisenstein[int]{3, 1}, inverse: eisenstein[int]{2, -1}, omega: 4,
		digitMod: [7]int{digitCentre, digitI, digitK, digitIK, digitJ, digitIJ, digitJK},
	}
)

// apertureTo returns the step from resolution res-1 to res.
func apertureTo(res int) *aperture {
	if res%2 == 1 {
		return &apertureToOdd
	}
	return &apertureToEven
}

// parent returns the parent of a site in the coarser lattice, and the digit of the site in the
// parent.
func (s *aperture) parent(z eisenstein[int]) (parent eisenstein[int], digit int) {
	digit = s.digitMod[((z.a+s.omega*z.b)%7+7)%7]
	r := remainders[digit]
	p := eisenstein[int]{z.a - r.a, z.b - r.b}.times(s.inverse)
	return eisenstein[int]{p.a / 7, p.b / 7}, digit
}

// scales are the products of all steps from resolution 0, exact in float64.
var scales = func() (all [MaxRes + 1]eisenstein[float64]) {
	z := eisenstein[int]{1, 0}
	for res := range all {
		if res > 0 {
			z = z.times(apertureTo(res).factor)
		}
		all[res] = eisenstein[float64]{float64(z.a), float64(z.b)}
	}
	return all
}()

// spacings are the distances between neighbouring centres on the plane of a face. On the unit
// sphere the distances are shorter, by up to a third at the corners of a face.
var spacings = func() (all [MaxRes + 1]float64) {
	const golden = math.Phi
	for res := range all {
		all[res] = math.Pow(7, -float64(res)/2) / (golden * golden)
	}
	return all
}()

// nearest returns the site nearest to a position. Rounding both coordinates would give a wrong cell
// near corners. So nearest rounds all three coordinates of the hexagonal grid, with sum 0, and
// recomputes the coordinate with the largest rounding error.
func nearest(z eisenstein[float64]) eisenstein[int] {
	q, r, s := math.RoundToEven(z.a-z.b), math.RoundToEven(z.b), math.RoundToEven(-z.a)
	dq, dr, ds := math.Abs(q-(z.a-z.b)), math.Abs(r-z.b), math.Abs(s+z.a)
	switch {
	case dq > dr && dq > ds: // q is not needed
	case dr > ds:
		r = -q - s
	default:
		s = -q - r
	}
	return eisenstein[int]{int(-s), int(r)}
}

// digitsCCW lists the digits in counter-clockwise order from the first axis; digitPosition is the
// inverse.
var (
	digitsCCW     = [6]int{digitI, digitIJ, digitJ, digitJK, digitK, digitIK}
	digitPosition = [7]int{digitI: 0, digitIJ: 1, digitJ: 2, digitJK: 3, digitK: 4, digitIK: 5}
)

// rotated returns the digit rotated counter-clockwise by a number of sixths of a circle.
func rotated(digit, by int) int {
	if digit == digitCentre {
		return digitCentre
	}
	return digitsCCW[(digitPosition[digit]+by)%6]
}
