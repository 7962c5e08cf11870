package bots

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
)

// The plot's measures in its own units.
const (
	marginLeft, marginTop = 90.0, 60.0
	plotWidth, plotHeight = 800.0, 320.0
	bins                  = 20   // of a twentieth each
	minShare              = 1e-5 // share at the foot of the axis, which is logarithmic: what matters is rare
	barWidth              = plotWidth / bins / 2.6
)

// writePlot draws how the scores of humans and of bots are spread.
func writePlot(file string, results []*result) error {
	people, programs := make([]float64, bins+1), make([]float64, bins+1)
	for _, r := range results {
		into := people
		if r.kind == kindBots {
			into = programs
		}
		for score, rows := range r.scores {
			into[min(bins, int(math.Round(score*bins)))] += float64(rows)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(plot(people, programs)), 0o644)
}

func plot(people, programs []float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" font-family="sans-serif" font-size="12">`+"\n",
		marginLeft+plotWidth+40, marginTop+plotHeight+60)
	fmt.Fprintf(&s, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(&s, `<text x="%v" y="20" font-size="15">Scores by user agent and headers: share of clients</text>`+"\n", marginLeft)
	axes(&s)
	for i, at := range []struct {
		name, colour string
		rows         []float64
	}{{"humans", "#2a78b5", people}, {"bots", "#d1603d", programs}} {
		total := 0.0
		for _, rows := range at.rows {
			total += rows
		}
		fmt.Fprintf(&s, `<rect x="%v" y="30" width="12" height="12" fill="%s"/><text x="%v" y="40">%s, %v rows</text>`+"\n",
			marginLeft+float64(i)*160, at.colour, marginLeft+float64(i)*160+18, at.name, total)
		for bin, rows := range at.rows {
			if rows == 0 {
				continue
			}
			y := yOf(rows / total)
			x := marginLeft + float64(bin)*plotWidth/bins + (float64(i)-1)*barWidth
			fmt.Fprintf(&s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s at %.2f: %v of %v</title></rect>`+"\n",
				x, y, barWidth, marginTop+plotHeight-y, at.colour, at.name, float64(bin)/bins, rows, total)
		}
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// axes draws the shares, the scores and the two thresholds.
func axes(s *strings.Builder) {
	for share := 1.0; share > minShare/2; share /= 10 {
		y := yOf(share)
		fmt.Fprintf(s, `<line x1="%v" x2="%v" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%v" y="%.1f" text-anchor="end">%.5g %%</text>`+"\n",
			marginLeft, marginLeft+plotWidth, y, y, marginLeft-28, y+4, share*100)
	}
	for tenth := range 11 {
		x := marginLeft + float64(tenth)*plotWidth/10
		fmt.Fprintf(s, `<text x="%v" y="%v" text-anchor="middle">%.1f</text>`+"\n", x, marginTop+plotHeight+18, float64(tenth)/10)
	}
	for _, at := range []struct {
		score float64
		name  string
	}{{bot.SuspectThreshold, "suspect"}, {bot.BotThreshold, "bot"}} {
		x := marginLeft + at.score*plotWidth
		fmt.Fprintf(s, `<line x1="%v" x2="%v" y1="%v" y2="%v" stroke="#444" stroke-dasharray="4 3"/><text x="%v" y="%v">%s from %v</text>`+"\n",
			x, x, marginTop, marginTop+plotHeight, x+4, marginTop-6, at.name, at.score)
	}
	fmt.Fprintf(s, `<text x="%v" y="%v" text-anchor="middle">score</text>`+"\n", marginLeft+plotWidth/2, marginTop+plotHeight+40)
}

// yOf is where a share stands.
func yOf(share float64) float64 {
	return marginTop + plotHeight*math.Log10(math.Max(share, minShare))/math.Log10(minShare)
}
