package pow

import (
	"fmt"
	"testing"
)

func BenchmarkIssuerIssue(b *testing.B) {
	p := Issuer{ring(b, newKey), at(noon)}
	b.ReportAllocs()
	for b.Loop() {
		p.Issue(guest, 16)
	}
}

// BenchmarkIssuerVerify: no token costs more than a valid solution.
func BenchmarkIssuerVerify(b *testing.B) {
	p := Issuer{ring(b, newKey, oldKey), at(noon)}
	solved := Solve(p.Issue(guest, 12).Text, 12)
	for name, token := range map[string]string{
		"solved": solved, "other client": Solve(p.Issue(Client{}, 1).Text, 1), "junk": "pow1." + solved[:30],
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Verify(token, guest)
			}
		})
	}
}

// BenchmarkSolve measures the cost of a solution for a program. A web page pays more:
// docs/decisions/0028-bot-challenge-proof-of-work.md.
func BenchmarkSolve(b *testing.B) {
	for _, d := range []int{12, 16} {
		b.Run(fmt.Sprint(d), func(b *testing.B) {
			p := Issuer{ring(b, newKey), at(noon)}
			for n := 0; b.Loop(); n++ { // a new puzzle each time, because the number of hashes varies
				Solve(p.Issue(Client{fmt.Sprint(n), ""}, d).Text, d)
			}
		})
	}
}
