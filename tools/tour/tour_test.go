package main

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/local/servertest"
)

func TestTour_PassesAndRestoresSwitches(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	_, before := servertest.Call(t, http.MethodGet, s.URL+"/_local/flags", "")
	var report bytes.Buffer
	if err := runTour(t.Context(), s.URL, &report); err != nil {
		t.Errorf("%v\n%s", err, report.String())
	}
	_, after := servertest.Call(t, http.MethodGet, s.URL+"/_local/flags", "")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("flags before (-) and after (+) the tour:\n%s", diff)
	}
}
