package adminapi

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// localDefaults are the fields whose default differs on this machine: a developer's curl declares itself a tool, and would be
// challenged.
var localDefaults = map[string]jsontext.Value{"botMode": jsontext.Value(`"observe"`)}

// flagsFile is the flags document that every process of the local system reads.
type flagsFile struct {
	mu   sync.Mutex
	path string
}

// propagationDelay is how long after a change every reader has seen it: they look at the file at most every 100 ms.
const propagationDelay = 120 * time.Millisecond

// read is the file's fields; none when there is no file.
func (f *flagsFile) read() (map[string]jsontext.Value, error) {
	fields := map[string]jsontext.Value{}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fields, nil
	}
	if err != nil {
		return nil, err
	}
	return fields, json.Unmarshal(data, &fields)
}

// write replaces the file at once, so that no reader sees half of it, and returns when all have seen the whole.
func (f *flagsFile) write(fields map[string]jsontext.Value) error {
	data, err := json.Marshal(fields, json.Deterministic(true), jsontext.Multiline(true))
	if err != nil {
		return err
	}
	half := f.path + ".new"
	if err := os.WriteFile(half, append(data, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.Rename(half, f.path); err != nil {
		return err
	}
	time.Sleep(propagationDelay)
	return nil
}

func (f *flagsFile) values() (*flags.Values, error) {
	fields, err := f.read()
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	return flags.Parse(data, nil)
}

func (c *Handler) getFlags(w http.ResponseWriter, _ *http.Request) error {
	values, err := c.flags.values()
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, values)
}

// putFlags sets the fields that the body has; one that is null has its default again, and one that is left out
// stays as it is. It answers all values when every process has them.
func (c *Handler) putFlags(w http.ResponseWriter, r *http.Request) error {
	var given map[string]jsontext.Value
	if err := decode(r, &given); err != nil {
		return err
	}
	if wrong := invalidFlags(given); wrong != nil {
		return problem.Invalid(wrong...)
	}
	c.flags.mu.Lock()
	defer c.flags.mu.Unlock()
	fields, err := c.flags.read()
	if err != nil {
		return err
	}
	for name, value := range given {
		if value.Kind() == jsontext.KindNull {
			if value = localDefaults[name]; value == nil {
				delete(fields, name)
				continue
			}
		}
		fields[name] = value
	}
	if err := c.flags.write(fields); err != nil {
		return err
	}
	return c.getFlags(w, r)
}

// deleteFlags puts every field back to its default.
func (c *Handler) deleteFlags(w http.ResponseWriter, _ *http.Request) error {
	c.flags.mu.Lock()
	defer c.flags.mu.Unlock()
	if err := c.flags.write(localDefaults); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// invalidFlags names the fields that the functions would ignore, because they do not know them, or not take, because of the
// value. Whoever types one hears of it.
func invalidFlags(given map[string]jsontext.Value) []problem.FieldError {
	var wrong []problem.FieldError
	for _, name := range slices.Sorted(maps.Keys(given)) {
		one, err := json.Marshal(map[string]jsontext.Value{name: given[name]})
		if err == nil {
			err = json.Unmarshal(one, new(flags.Values), json.RejectUnknownMembers(true))
		}
		if field, ok := decodeErrorField(err); ok {
			wrong = append(wrong, field)
			continue
		}
		if err == nil && given[name].Kind() != jsontext.KindNull {
			_, err = flags.Parse(one, nil)
		}
		if err != nil {
			wrong = append(wrong, problem.FieldError{Field: name, Code: "invalid", Detail: err.Error()})
		}
	}
	return wrong
}

// decodeErrorField is the member that an error of decoding is about; ok is false when it is about no single one.
func decodeErrorField(err error) (_ problem.FieldError, ok bool) {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return problem.FieldError{}, false
	}
	path := strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", ".")
	if errors.Is(err, json.ErrUnknownName) {
		return problem.FieldError{Field: path, Code: problem.UnknownField, Detail: "There is no such member."}, true
	}
	return problem.FieldError{Field: path, Code: "type", Detail: fmt.Sprintf("Must not be a JSON %v.", wrong.JSONKind)}, true
}

// ResetFlags begins a run with the defaults, whatever the last one was told.
func ResetFlags(path string) error {
	data, err := json.Marshal(localDefaults, json.Deterministic(true))
	if err != nil {
		return err // unreachable: written out above
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
