package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
)

// save reads the server's switches, for restore.
func (t *tour) save() error {
	var upstreams map[string]struct {
		Behaviour map[string]any `json:"behaviour"`
	}
	if err := t.get("/flags", &t.flags); err != nil {
		return err
	}
	if err := t.get("/upstreams", &upstreams); err != nil {
		return err
	}
	t.behaviours = map[string]any{}
	for name, u := range upstreams {
		t.behaviours[name] = u.Behaviour
	}
	return nil
}

// restore undoes the changes of the tour since the last restore, the newest change first. restore
// ignores the end of the tour's context, so an interrupted tour restores the switches too.
func (t *tour) restore() {
	undo := t.saved
	t.saved = nil
	for i := len(undo) - 1; i >= 0; i-- {
		if err := undo[i](t); err != nil {
			t.failed++
			fmt.Fprintf(t.out, "\n   FAILED  a switch was not restored: %v\n", err)
		}
	}
}

// put sends a request to restore a switch.
func put(method, path string, body any) func(*tour) error {
	return func(t *tour) error {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), restoreTimeout)
		defer cancel()
		a, err := t.do(ctx, method, path, text)
		if err == nil && a.status >= http.StatusMultipleChoices {
			err = a.want(http.StatusOK, "")
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		return nil
	}
}

// setFlags sets fields of the flags document until the chapter ends.
func (t *tour) setFlags(fields map[string]any) error {
	before := map[string]any{}
	for name := range fields {
		before[name] = t.flags[name]
	}
	t.saved = append(t.saved, put(http.MethodPut, local+"/flags", before))
	a, err := t.send(http.MethodPut, local+"/flags", fields)
	if err == nil {
		err = a.want(http.StatusOK, "")
	}
	return err
}

// misbehave makes a sandbox upstream misbehave until the chapter ends.
func (t *tour) misbehave(upstream string, behaviour map[string]any) error {
	t.saved = append(t.saved, put(http.MethodPut, local+"/upstreams/"+upstream, t.behaviours[upstream]))
	a, err := t.send(http.MethodPut, local+"/upstreams/"+upstream, behaviour)
	if err == nil {
		err = a.want(http.StatusOK, "")
	}
	return err
}

// heal gives an upstream the behaviour of the time before the tour.
func (t *tour) heal(upstream string) error {
	a, err := t.send(http.MethodPut, local+"/upstreams/"+upstream, t.behaviours[upstream])
	if err == nil {
		err = a.want(http.StatusOK, "")
	}
	return err
}
