package event

import (
	"crypto/rand"
	"fmt"
	"os"
)

// NewInstanceName returns a name for this process, for Meta.Instance: the revision, the process id
// and six random characters. An empty revision becomes "bff-consumer". Each call returns another
// name.
func NewInstanceName(revision string) string {
	if revision == "" {
		revision = "bff-consumer"
	}
	return fmt.Sprintf("%s-%d-%s", revision, os.Getpid(), rand.Text()[:6])
}
