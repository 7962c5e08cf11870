package invalidate

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/deptest"
)

func TestDeps_MatchReviewedList(t *testing.T) { deptest.Golden(t, deptest.GRPC) }
