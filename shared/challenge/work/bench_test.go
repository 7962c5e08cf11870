package work

import (
	"fmt"
	"testing"
)

func BenchmarkMake(b *testing.B) {
	p := Puzzles{ring(b, newKey), at(noon)}
	b.ReportAllocs()
	for b.Loop() {
		p.Make(guest, 16)
	}
}

// Whatever is sent costs no more than a good solution.
func BenchmarkCheck(b *testing.B) {
	p := Puzzles{ring(b, newKey, oldKey), at(noon)}
	solved := Solve(p.Make(guest, 12).Text, 12)
	for name, token := range map[string]string{
		"solved": solved, "of another": Solve(p.Make(Client{}, 1).Text, 1), "junk": "pow1." + solved[:30],
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Check(token, guest)
			}
		})
	}
}

// What a client that is a program pays; a page pays more: docs/decisions/0028-bot-challenge-proof-of-work.md.
func BenchmarkSolve(b *testing.B) {
	for _, d := range []int{12, 16} {
		b.Run(fmt.Sprint(d), func(b *testing.B) {
			p := Puzzles{ring(b, newKey), at(noon)}
			for n := 0; b.Loop(); n++ { // another puzzle each time: the work differs
				Solve(p.Make(Client{fmt.Sprint(n), ""}, d).Text, d)
			}
		})
	}
}
