package geo

import "math"

// vector is a direction from the centre of the earth: x to (0° N, 0° E), y to (0° N, 90° E), z to
// the north pole.
type vector [3]float64

func (v vector) dot(w vector) float64 { return v[0]*w[0] + v[1]*w[1] + v[2]*w[2] }

func (v vector) cross(w vector) vector {
	return vector{v[1]*w[2] - v[2]*w[1], v[2]*w[0] - v[0]*w[2], v[0]*w[1] - v[1]*w[0]}
}

// plus returns v + k·w.
func (v vector) plus(k float64, w vector) vector {
	return vector{v[0] + k*w[0], v[1] + k*w[1], v[2] + k*w[2]}
}

func (v vector) unit() vector {
	return vector{}.plus(1/math.Sqrt(v.dot(v)), v)
}

func (p Point) vector() vector { return direction(radians(p.Lat), radians(p.Lng)) }

// direction returns the direction of a latitude and longitude in radians.
func direction(lat, lng float64) vector {
	sinLat, cosLat := math.Sincos(lat)
	sinLng, cosLng := math.Sincos(lng)
	return vector{cosLat * cosLng, cosLat * sinLng, sinLat}
}

// vertices are the twelve corners of H3's icosahedron in R. Buckminster Fuller's orientation, all
// at sea. Each corner is the centre of a pentagon, in the order of pentagonBases.
var vertices = [12]vector{
	{0.4201524267087102, 0.0781452494027833, 0.9040825506150192},
	{-0.5154559599440417, -0.3817168982871331, 0.7672009925177476},
	{-0.4146822253203352, 0.6559624054348006, 0.6306758078914754},
	{0.3557814025329444, -0.8435800024661783, 0.4022342266029254},
	{0.5188367303273647, 0.8354203803782360, 0.1813318375572621},
	{0.9950094394362418, -0.0913477952764279, 0.0401471758771666},
	{-0.9950094394362418, 0.0913477952764280, -0.0401471758771666},
	{-0.5188367303273642, -0.8354203803782361, -0.1813318375572621},
	{-0.3557814025329447, 0.8435800024661781, -0.4022342266029255},
	{0.4146822253203354, -0.6559624054348006, -0.6306758078914753},
	{0.5154559599440418, 0.3817168982871331, -0.7672009925177474},
	{-0.4201524267087094, -0.0781452494027827, -0.9040825506150196},
}

// faceCorners are the vertices of each face, counter-clockwise; the first axis points to the first
// vertex.
var faceCorners = [20][3]int{
	{0, 4, 2}, {0, 2, 1}, {0, 1, 3}, {0, 3, 5}, {0, 5, 4},
	{8, 2, 4}, {6, 1, 2}, {7, 3, 1}, {9, 5, 3}, {10, 4, 5},
	{2, 8, 6}, {1, 6, 7}, {3, 7, 9}, {5, 9, 10}, {4, 10, 8},
	{11, 6, 8}, {11, 7, 6}, {11, 9, 7}, {11, 10, 9}, {11, 8, 10},
}

// face is a plane touching the unit sphere at the middle of the face, with the sphere projected
// from the centre (gnomonic). Positions on a face are Eisenstein numbers in units of the spacing at
// resolution 0.
type face struct {
	middle vector
	one    vector // 1, relative to the middle
	omega  vector // ω, relative to the middle
	toA    vector // coordinate a of a direction d is (toA·d)/(middle·d), and b likewise
	toB    vector
}

var faces = func() (all [20]face) {
	for i, c := range faceCorners {
		middle := vertices[c[0]].plus(1, vertices[c[1]]).plus(1, vertices[c[2]]).unit()
		x := vertices[c[0]].plus(-middle.dot(vertices[c[0]]), middle).unit()
		y := middle.cross(x)
		unit, sqrt3 := spacings[0], math.Sqrt(3)
		all[i] = face{
			middle: middle,
			one:    vector{}.plus(unit, x),
			omega:  vector{}.plus(-unit/2, x).plus(unit*sqrt3/2, y),
			toA:    vector{}.plus(1/unit, x).plus(1/(unit*sqrt3), y),
			toB:    vector{}.plus(2/(unit*sqrt3), y),
		}
	}
	return all
}()

// locate returns the face of a direction, and the nearest site of a resolution on the face.
func locate(v vector, res int) (onFace int, z eisenstein[int]) {
	depth := -1.0
	for i := range faces {
		if d := v.dot(faces[i].middle); d > depth {
			onFace, depth = i, d
		}
	}
	f := &faces[onFace]
	at := eisenstein[float64]{v.dot(f.toA) / depth, v.dot(f.toB) / depth}
	return onFace, nearest(at.times(scales[res]))
}

// centre returns the direction of a site of a face. For a site beyond the edge, the neighbouring
// face gives a slightly different direction.
func centre(onFace int, z eisenstein[int], res int) vector {
	scale := scales[res]
	conjugate := eisenstein[float64]{scale.a - scale.b, -scale.b}
	at := eisenstein[float64]{float64(z.a), float64(z.b)}.times(conjugate)
	norm := scale.times(conjugate).a
	f := &faces[onFace]
	return f.middle.plus(at.a/norm, f.one).plus(at.b/norm, f.omega).unit()
}
