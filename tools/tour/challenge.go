package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	tool      = "curl/8.5.0" // declares itself a tool
	googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
	// googleAddress is in a range that Google publishes for its crawler.
	googleAddress = "66.249.66.1"
	// difficulty is the number of leading zero bits of the puzzle; the deployed default is 16.
	difficulty = 8
)

// challenge solves the proof of work that a tool receives, and shows how a search engine is
// verified.
func challenge(t *tour) {
	facets := api + "/facets?country=AF"
	// A new device, because the detector records a verdict once a minute per device.
	device := []string{"User-Agent", tool, "X-Client-Screen", fmt.Sprintf("%dx%d", 1000+rand.IntN(9000), 1000+rand.IntN(9000))}
	cursor, puzzle := "", ""
	t.step("Ask with a tool's user agent while bots are stopped", "429 SUSPECTED_BOT with a proof of work", func() (string, error) {
		var err error
		if cursor, err = t.cursor(); err == nil {
			err = t.setFlags(map[string]any{"botMode": "enforce", "challenge": map[string]any{"difficulty": difficulty}})
		}
		if err != nil {
			return "", err
		}
		a, err := t.send(http.MethodGet, facets, nil, device...)
		if err == nil {
			err = a.want(http.StatusTooManyRequests, "SUSPECTED_BOT")
		}
		if err != nil {
			return "", err
		}
		p, err := decode[struct {
			Challenge struct {
				Providers []struct {
					Kind       string `json:"kind"`
					Challenge  string `json:"challenge"`
					Difficulty int    `json:"difficulty"`
				} `json:"providers"`
			} `json:"challenge"`
		}](a)
		if err != nil {
			return "", err
		}
		for _, provider := range p.Challenge.Providers {
			if provider.Kind == "proof-of-work" && provider.Difficulty == difficulty {
				puzzle = provider.Challenge
				return fmt.Sprintf("%s, %s", a.says(), puzzle), nil
			}
		}
		return a.says(), errors.New("no proof of work is offered")
	})
	t.step("Ask again with the solution", "200", func() (string, error) {
		solution, tries := solve(puzzle, difficulty)
		a, err := t.send(http.MethodGet, facets, nil, append(device, "X-Recaptcha-Token", solution)...)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s after %d hashes", a.says(), tries), a.want(http.StatusOK, "")
	})
	t.step("Ask as Googlebot from an address of Google's", "200", func() (string, error) {
		a, err := t.send(http.MethodGet, facets, nil, "User-Agent", googlebot, "X-Forwarded-For", googleAddress)
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusOK, "")
	})
	t.step("Ask as Googlebot from this machine", "429 SUSPECTED_BOT", func() (string, error) {
		a, err := t.send(http.MethodGet, facets, nil, "User-Agent", googlebot)
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusTooManyRequests, "SUSPECTED_BOT")
	})
	t.relay()
	t.step("Read the verdict", "bot_suspected.v1 with actionTaken challenge", func() (string, error) {
		return t.poll(5*time.Second, func() (string, error) {
			events, err := t.published("bot_suspected.v1", cursor)
			for _, e := range events {
				if err == nil && e.Data.Payload["actionTaken"] == "challenge" {
					return fmt.Sprintf("bot_suspected.v1, score %v", e.Data.Payload["score"]), nil
				}
			}
			return "", errors.Join(err, errors.New("no such event"))
		})
	})
}

// solve counts up from 0 until the SHA-256 of the puzzle, a dot and the number begins with enough
// zero bits.
func solve(puzzle string, difficulty int) (solution string, tries int) {
	for n := 0; ; n++ {
		text := puzzle + "." + strconv.Itoa(n)
		sum := sha256.Sum256([]byte(text))
		if bits.LeadingZeros64(binary.BigEndian.Uint64(sum[:])) >= difficulty {
			return text, n + 1
		}
	}
}
