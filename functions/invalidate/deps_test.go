package invalidate

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/deptest"
)

func TestDeps(t *testing.T) { deptest.Golden(t, deptest.GRPC) }
