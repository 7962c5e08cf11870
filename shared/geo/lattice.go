package geo

import "math"

// On each face of the icosahedron the centres of cells form a triangular lattice. Here its sites are the Eisenstein
// integers: a + bω, where ω turns by 120°. The lattice seven times finer is the same one multiplied by an
// integer of norm 7, so going from a cell to its parent is a division, and which child it was is the remainder.
type eisenstein[T int | float64] struct{ a, b T }

func (z eisenstein[T]) times(w eisenstein[T]) eisenstein[T] {
	return eisenstein[T]{z.a*w.a - z.b*w.b, z.a*w.b + z.b*w.a - z.b*w.b} // ω² = -1-ω
}

// H3's digits name the remainders: the centre child and the six around it.
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

// An aperture is one step to a finer lattice. H3 alternates between the two integers of norm 7,
// which turn the lattice to and fro by 19.1°: together they are an exact 7.
type aperture struct {
	factor   eisenstein[int]
	inverse  eisenstein[int] // its conjugate: factor · inverse = 7
	omega    int             // what ω is modulo the factor
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

// apertureTo is the step from resolution res-1 to res.
func apertureTo(res int) *aperture {
	if res%2 == 1 {
		return &apertureToOdd
	}
	return &apertureToEven
}

// parent takes a site one step coarser, and tells which child of its parent it is.
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

// spacings are the distances between neighbouring centres on a face's plane, which touches the unit sphere
// at the middle of the face. On the sphere they are shorter, by up to a third at the corners of a face.
var spacings = func() (all [MaxRes + 1]float64) {
	const golden = math.Phi
	for res := range all {
		all[res] = math.Pow(7, -float64(res)/2) / (golden * golden)
	}
	return all
}()

// nearest is the site nearest to a position. Rounding both coordinates would pick from the wrong cell near corners,
// so all three coordinates of the hexagonal grid, which sum to 0, are rounded and the worst of them is replaced.
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

// digitsCCW lists the digits in counter-clockwise order from the first axis; sixthOf is its inverse.
var (
	digitsCCW     = [6]int{digitI, digitIJ, digitJ, digitJK, digitK, digitIK}
	digitPosition = [7]int{digitI: 0, digitIJ: 1, digitJ: 2, digitJK: 3, digitK: 4, digitIK: 5}
)

// rotated is the digit turned counter-clockwise by sixths of a circle.
func rotated(digit, by int) int {
	if digit == digitCentre {
		return digitCentre
	}
	return digitsCCW[(digitPosition[digit]+by)%6]
}
