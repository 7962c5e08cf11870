package pack

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// zipEpoch is the modification time of every file in an archive: the first day that zip can
// express.
var zipEpoch = time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC)

// compress returns the zip archive of a directory. The same files give the same bytes, as long as
// the same release of Go compresses them: files are in lexical order, with mode 0644 and zipEpoch.
// They are writable because the platform's packer refuses a read-only go.mod. A symbolic link is an
// error.
func compress(dir string) ([]byte, error) {
	var buffer bytes.Buffer
	out := zip.NewWriter(&buffer)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a directory", path)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate, Modified: zipEpoch}
		header.SetMode(0o644)
		w, err := out.CreateHeader(header)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	if err == nil {
		err = out.Close()
	}
	return buffer.Bytes(), err
}

// extract writes the files of an archive below a directory. A name that leaves the directory is an
// error.
func extract(archive []byte, dir string) error {
	in, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		return fmt.Errorf("pack: read the archive: %w", err)
	}
	for _, file := range in.File {
		if !filepath.IsLocal(file.Name) {
			return fmt.Errorf("pack: the archive has a file %q", file.Name)
		}
		r, err := file.Open()
		if err != nil {
			return err
		}
		content, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return fmt.Errorf("pack: read %s of the archive: %w", file.Name, err)
		}
		path := filepath.Join(dir, file.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, file.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}
