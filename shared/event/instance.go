package event

import (
	"crypto/rand"
	"fmt"
	"os"
)

// NewInstanceName returns a name for this process, for Meta.Instance: the revision, the process id
// and six random characters (30 bits). An empty revision becomes "bff-consumer". Each call returns
// another name, so call it once per process. It does no I/O and never fails.
func NewInstanceName(revision string) string {
	if revision == "" {
		revision = "bff-consumer"
	}
	return fmt.Sprintf("%s-%d-%s", revision, os.Getpid(), rand.Text()[:6])
}
