// Command update rewrites the crawler list of package agent from a release of crawler-user-agents
// (MIT):
//
//	go run ./bot/agent/update FILE     in shared/, where FILE is crawler-user-agents.json or the package's .tgz
//
// The list and the licence go to bot/agent/data. Neither the command nor the service downloads a
// release.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./bot/agent/update crawler-user-agents.json|PACKAGE.tgz")
		os.Exit(2)
	}
	if err := run(os.Args[1], filepath.Join("bot", "agent", "data")); err != nil {
		fmt.Fprintln(os.Stderr, "update:", err)
		os.Exit(1)
	}
}

// release is the part of a release that this command uses.
type release struct {
	entries []struct {
		Pattern string `json:"pattern"`
	}
	version string
	licence []byte
}

// run writes the list and the licence of a release to a directory.
func run(from, to string) error {
	found, err := readRelease(from)
	if err != nil {
		return err
	}
	list, err := compact(found)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(to, "crawlers.txt"), list, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "LICENSE"), found.licence, 0o644)
}

// readRelease reads a release from its .tgz package, or from the directory of the unpacked package.
func readRelease(from string) (release, error) {
	files := map[string][]byte{}
	if strings.HasSuffix(from, ".json") {
		for _, name := range []string{"crawler-user-agents.json", "package.json", "LICENSE"} {
			at := filepath.Join(filepath.Dir(from), name)
			if name == "crawler-user-agents.json" {
				at = from
			}
			content, err := os.ReadFile(at)
			if err != nil {
				return release{}, err
			}
			files[name] = content
		}
	} else if err := unpack(from, files); err != nil {
		return release{}, err
	}
	var about struct {
		Version string `json:"version"`
	}
	found := release{licence: files["LICENSE"]}
	if err := json.Unmarshal(files["package.json"], &about); err != nil {
		return release{}, fmt.Errorf("package.json: %w", err)
	}
	if err := json.Unmarshal(files["crawler-user-agents.json"], &found.entries); err != nil {
		return release{}, fmt.Errorf("crawler-user-agents.json: %w", err)
	}
	if found.version = about.Version; len(found.entries) == 0 || len(found.licence) == 0 {
		return release{}, errors.New("the release has no patterns or no licence")
	}
	return found, nil
}

// unpack reads the files of a .tgz package into files, by base name.
func unpack(archive string, files map[string][]byte) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if path.Dir(header.Name) != "package" {
			continue
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, entries); err != nil {
			return err
		}
		files[path.Base(header.Name)] = content.Bytes()
	}
}
