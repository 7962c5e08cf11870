package event

import (
	"crypto/rand"
	"fmt"
	"os"
)

// NewInstanceName names this process, for Meta.Instance: the platform's revision, "" where there is none, and a part of its
// own.
func NewInstanceName(revision string) string {
	if revision == "" {
		revision = "bff-consumer"
	}
	return fmt.Sprintf("%s-%d-%s", revision, os.Getpid(), rand.Text()[:6])
}
