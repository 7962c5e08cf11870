// Package vectortest reads, checks and writes the file of test vectors that a package publishes
// beside its code. Only tests import it.
package vectortest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write "+File)

// File is the path of the vectors in a package's directory.
const File = "testdata/vectors.json"

// CheckGolden fails the test with the message changed if the JSON form of made differs from File.
// go test -update writes File.
func CheckGolden(t testing.TB, made any, changed string) {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(made); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(File, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(readFile(t), text.Bytes()) {
		t.Error(changed)
	}
}

// Read reads File into a T, or fails the test.
func Read[T any](t testing.TB) (vectors T) {
	t.Helper()
	if err := json.Unmarshal(readFile(t), &vectors); err != nil {
		t.Fatal(err)
	}
	return vectors
}

func readFile(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(File)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
