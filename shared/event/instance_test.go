package event

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestNewInstanceName_IsUniquePerCall(t *testing.T) {
	for revision, prefix := range map[string]string{"consume-00042-abc": "consume-00042-abc", "": "bff-consumer"} {
		a, b := NewInstanceName(revision), NewInstanceName(revision)
		if a == b || !strings.HasPrefix(a, fmt.Sprintf("%s-%d-", prefix, os.Getpid())) {
			t.Errorf("%q is %s and %s", revision, a, b)
		}
	}
}
