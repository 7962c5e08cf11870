package main

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/local/tour"
)

func TestTour_PassesAndRestoresSwitches(t *testing.T) {
	s := startServer(t, stateDir(t))
	_, before := call(t, http.MethodGet, s.URL+"/_local/flags", "")
	var report bytes.Buffer
	if err := tour.Run(t.Context(), s.URL, &report); err != nil {
		t.Errorf("%v\n%s", err, report.String())
	}
	_, after := call(t, http.MethodGet, s.URL+"/_local/flags", "")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("flags before and after the tour\n%s", diff)
	}
}
