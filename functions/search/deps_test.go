package search

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/deptest"
)

func TestDeps_MatchGolden(t *testing.T) { deptest.Golden(t) }
