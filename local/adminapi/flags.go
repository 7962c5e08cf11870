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

// localDefaults are the flags with a default other than the platform's. In mode "enforce" the bot
// detector would challenge a developer's curl, because curl declares itself as a tool.
var localDefaults = map[string]jsontext.Value{"botMode": jsontext.Value(`"observe"`)}

// flagsFile is the flags document that every process of the local system reads.
type flagsFile struct {
	mu   sync.Mutex // held by putFlags and deleteFlags from read to write
	path string
}

// propagationDelay is the time after which every reader has seen a change. Readers check the file
// every 100 ms at most.
const propagationDelay = 120 * time.Millisecond

// read returns the members of the document, and an empty map without a file.
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

// write replaces the file atomically and then sleeps for propagationDelay, so every reader has the
// new flags when write returns.
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

// values returns the flags as the functions parse them, defaults included.
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

// putFlags sets the flags in the body. null restores the default of a flag; absent flags stay
// unchanged. It responds with all flags after 120 ms, when every process has the new flags, and
// with 422 and no change for an invalid flag.
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

// deleteFlags restores the default of every flag. It responds after 120 ms, when every process has
// the defaults.
func (c *Handler) deleteFlags(w http.ResponseWriter, _ *http.Request) error {
	c.flags.mu.Lock()
	defer c.flags.mu.Unlock()
	if err := c.flags.write(localDefaults); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// invalidFlags returns an error for each flag that the functions would ignore, because the name is
// unknown, or reject, because of the value.
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

// decodeErrorField returns the member that a decoding error is about. ok is false for an error
// about no single member.
func decodeErrorField(err error) (_ problem.FieldError, ok bool) {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return problem.FieldError{}, false
	}
	path := strings.ReplaceAll(strings.TrimPrefix(string(wrong.JSONPointer), "/"), "/", ".")
	if errors.Is(err, json.ErrUnknownName) {
		return problem.FieldError{Field: path, Code: problem.UnknownField, Detail: "The member does not exist."}, true
	}
	return problem.FieldError{Field: path, Code: "type", Detail: fmt.Sprintf("Must not be a JSON %v.", wrong.JSONKind)}, true
}

// ResetFlags writes the default flags to path, to discard the flags of the previous run. It does
// not wait for readers. It returns the error of the file system.
func ResetFlags(path string) error {
	data, err := json.Marshal(localDefaults, json.Deterministic(true))
	if err != nil {
		return err // unreachable: localDefaults is a constant
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
