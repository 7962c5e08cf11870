package event

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestAProcessHasANameOfItsOwn(t *testing.T) {
	for revision, prefix := range map[string]string{"consume-00042-abc": "consume-00042-abc", "": "bff-consumer"} {
		a, b := Instance(revision), Instance(revision)
		if a == b || !strings.HasPrefix(a, fmt.Sprintf("%s-%d-", prefix, os.Getpid())) {
			t.Errorf("%q is %s and %s", revision, a, b)
		}
	}
}
