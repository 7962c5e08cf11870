package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
)

// forEachLine calls with for each line of a JSON Lines file; a name that ends in .gz means gzip. It
// skips empty lines. An error names the file and the line; a line has at most 1 MiB.
func forEachLine[T any](file string, with func(T) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var plain io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if plain, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	lines := bufio.NewScanner(plain)
	lines.Buffer(nil, 1<<20)
	for at := 1; lines.Scan(); at++ {
		if len(strings.TrimSpace(lines.Text())) == 0 {
			continue
		}
		var one T
		if err = json.Unmarshal(lines.Bytes(), &one); err == nil {
			err = with(one)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", file, at, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
